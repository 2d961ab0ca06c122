"""Which changes of a test file only add to it, and which reach what was there."""

import time

import pytest

from code_commit.verify.growth import only_adds

PYTHON = """import math
from lib import f

CASES = [1, 2]


def helper(x):
    return f(x)


def test_a(client):
    assert f(1) == 1
    assert client


class TestB(Case):
    limit = 3

    def test_b(self):
        self.check(helper(2))
"""
SCRIPT = """import { f } from '../src/f';

describe('f', () => {
  it('adds', () => {
    expect(f(1)).toBe(2);
  });

  it('takes away', () => {
    expect(f(-1)).toBe(0);
  });
});
"""
GO = """package lib

import (
\t"testing"
)

func TestA(t *testing.T) {
\tif f(1) != 2 {
\t\tt.Error("no")
\t}
}
"""
RUBY = """require "test_helper"

class FTest < Minitest::Test
  def test_a
    assert_equal 2, f(1)
  end
end
"""
JAVA = """package lib;

import org.junit.Test;

public class FTest {
  @Test
  public void adds() {
    assertEquals(2, f(1));
  }
}
"""
RUST = """use lib::f;

#[test]
fn adds() {
    assert_eq!(f(1), 2);
}
"""


def in_front(text: str, line: str, more: str) -> str:
    assert line in text
    return text.replace(line, more + line, 1)


def behind(text: str, line: str, more: str) -> str:
    assert line in text
    return text.replace(line, line + more, 1)


ADDED = {
    # the file, its old content, its new content
    "a test": ("test_a.py", PYTHON, PYTHON + "\n\ndef test_c():\n    assert f(3)\n"),
    "a test in between": ("test_a.py", PYTHON, in_front(PYTHON, "def test_a", "async def test_c():\n    assert f(3)\n\n\n")),
    "a decorated test": ("test_a.py", PYTHON, PYTHON + "\n\n@pytest.mark.parametrize('x', CASES)\ndef test_c(x):\n    assert x\n"),
    "a test of a class": ("test_a.py", PYTHON, PYTHON + "\n    def test_c(self):\n        self.check(3)\n"),
    "a class": ("test_a.py", PYTHON, PYTHON + "\n\nclass TestC(Case):\n    def test_b(self):\n        pass\n"),
    "a fixture": ("test_a.py", PYTHON, PYTHON + "\n\n@pytest.fixture\ndef server():\n    return 1\n"),
    "an assertion": ("test_a.py", PYTHON, behind(PYTHON, "    assert client\n", "    assert f(2) == 2\n")),
    "an import": ("test_a.py", PYTHON, "import json\n" + PYTHON),
    "a name of an import": ("test_a.py", PYTHON, PYTHON.replace("import f", "import f, g")),
    "a constant": ("test_a.py", PYTHON, behind(PYTHON, "CASES = [1, 2]\n", "MORE: list[int] = [3]\n")),
    "blank lines": ("test_a.py", PYTHON, PYTHON.replace("\n\n\n", "\n")),
    "CRLF": ("test_a.py", PYTHON, PYTHON.replace("\n", "\r\n")),
    "nothing yet": ("test_a.py", "", PYTHON),
    "it at the end": ("a.test.js", SCRIPT, behind(SCRIPT, "toBe(0);\n  });\n", "\n  it('more', () => {\n    f(2);\n  });\n")),
    "it in between": ("a.test.js", SCRIPT, in_front(SCRIPT, "  it('takes", "  it('more', () => {\n    f(2);\n  });\n\n")),
    "describe": ("a.test.js", SCRIPT, SCRIPT + "\ndescribe('g', () => {\n  it('adds', () => {\n    const f = 2;\n  });\n});\n"),
    "a named import": ("a.test.js", SCRIPT, "import { g } from '../src/g';\n" + SCRIPT),
    "a last statement": ("a.test.js", SCRIPT, behind(SCRIPT, "toBe(0);\n", "    expect(f(0)).toBe(1);\n")),
    "Go": ("a_test.go", GO, GO + "\nfunc TestB(t *testing.T) {\n\terr := g()\n}\n"),
    "Go, in between and imported": (
        "a_test.go", GO,
        in_front(behind(GO, '\t"testing"\n', '\t"example.org/g"\n'), "func TestA", "// TestB is new.\nfunc TestB(t *testing.T) {\n\tg.G()\n}\n\n"),
    ),
    "Ruby": ("a_test.rb", RUBY, behind(RUBY, "f(1)\n  end\n", "\n  def test_b\n    assert f(2)\n  end\n")),
    "Java": ("FTest.java", JAVA, in_front(JAVA, "  @Test\n", "  @Test\n  public void more() {\n    g();\n  }\n\n")),
    "Java, imported": ("FTest.java", JAVA, in_front(JAVA, "import org", "import java.util.List;\n")),
    "Rust": ("tests/a.rs", RUST, in_front(RUST, "#[test]", "#[test]\nfn more() {\n    let x = f(2);\n}\n\n").replace("use", "use lib::g;\nuse", 1)),
}  # fmt: skip

REACHING = {
    "a test of the same name": ("test_a.py", PYTHON, PYTHON + "\n\ndef test_a():\n    pass\n"),
    "a method of the same name": ("test_a.py", PYTHON, PYTHON + "\n    def test_b(self):\n        pass\n"),
    "a class of the same name": ("test_a.py", PYTHON, PYTHON + "\n\nclass TestB:\n    pass\n"),
    "a helper": ("test_a.py", PYTHON, in_front(PYTHON, "def test_a", "def helper(x):\n    return 1\n\n\n")),
    "what is called": ("test_a.py", PYTHON, in_front(PYTHON, "def helper", "def f(x):\n    return x\n\n\n")),
    "a method that is called": ("test_a.py", PYTHON, PYTHON + "\n    def check(self, x):\n        pass\n"),
    "a fixture that is asked for": ("test_a.py", PYTHON, PYTHON + "\n\n@fixture\ndef client():\n    return 1\n"),
    "a fixture for all": ("test_a.py", PYTHON, PYTHON + "\n\n@fixture(autouse=True)\ndef quiet():\n    yield\n"),
    "pytestmark": ("test_a.py", PYTHON, PYTHON + "\n\npytestmark = pytest.mark.skip\n"),
    "pytestmark of a class": ("test_a.py", PYTHON, PYTHON + "\n    pytestmark = skip\n"),
    "__test__": ("test_a.py", PYTHON, PYTHON + "\n    __test__ = False\n"),
    "setup_module": ("test_a.py", PYTHON, PYTHON + "\n\ndef setup_module():\n    skip()\n"),
    "setUp": ("test_a.py", PYTHON, PYTHON + "\n    def setUp(self):\n        self.skipTest('')\n"),
    "run": ("test_a.py", PYTHON, PYTHON + "\n    def run(self, result):\n        pass\n"),
    "load_tests": ("test_a.py", PYTHON, PYTHON + "\n\ndef load_tests(*args):\n    return TestSuite()\n"),
    "del": ("test_a.py", PYTHON, PYTHON + "\n\ndel test_a\n"),
    "another value": ("test_a.py", PYTHON, PYTHON + "\n\ntest_a = None\n"),
    "an attribute": ("test_a.py", PYTHON, PYTHON + "\n\ntest_a.__test__ = False\n"),
    "a call": ("test_a.py", PYTHON, PYTHON + "\n\nsetattr(math, 'pi', 3)\n"),
    "the value of a call": ("test_a.py", PYTHON, PYTHON + "\n\n_ = setattr(math, 'pi', 3)\n"),
    "a condition": ("test_a.py", PYTHON, PYTHON + "\n\nif True:\n    test_a = 1\n"),
    "another import": ("test_a.py", PYTHON, PYTHON.replace("from lib", "from fake")),
    "an import behind": ("test_a.py", PYTHON, behind(PYTHON, "import f\n", "from fake import f\n")),
    "an import by that name": ("test_a.py", PYTHON, behind(PYTHON, "import f\n", "import fake as math\n")),
    "an import of a fixture": ("test_a.py", PYTHON, behind(PYTHON, "import f\n", "from fake import client\n")),
    "an import of everything": ("test_a.py", PYTHON, behind(PYTHON, "import f\n", "from fake import *\n")),
    "an import away": ("test_a.py", PYTHON, PYTHON.replace("import math\n", "")),
    "a decorator": ("test_a.py", PYTHON, in_front(PYTHON, "def test_a", "@skip\n")),
    "a return": ("test_a.py", PYTHON, behind(PYTHON, "(client):\n", "    return\n")),
    "a yield": ("test_a.py", PYTHON, behind(PYTHON, "    assert client\n", "    yield\n")),
    "a longer helper": ("test_a.py", PYTHON, behind(PYTHON, "return f(x)\n", "    return 1\n")),
    "more on the line": ("test_a.py", PYTHON, PYTHON.replace("CASES = [1, 2]", "CASES = [1, 2]; del f")),
    "another base": ("test_a.py", PYTHON, PYTHON.replace("(Case)", "(Fake)")),
    "a case less": ("test_a.py", PYTHON, PYTHON.replace("[1, 2]", "[1]")),
    "an assertion away": ("test_a.py", PYTHON, PYTHON.replace("    assert client\n", "")),
    "no Python": ("test_a.py", PYTHON, PYTHON + "\n\ndef test_c(:\n"),
    "nothing": ("test_a.py", PYTHON, ""),
    "only": ("a.test.js", SCRIPT, SCRIPT + "\ndescribe.only('g', () => {\n});\n"),
    "only inside": ("a.test.js", SCRIPT, behind(SCRIPT, "toBe(0);\n  });\n", "  it.only('more', () => {\n  });\n")),
    "mock": ("a.test.js", SCRIPT, SCRIPT + "\njest.mock('../src/f');\n"),
    "before each": ("a.test.js", SCRIPT, SCRIPT + "\nbeforeEach(() => {\n  process.exit(0);\n});\n"),
    "a function by that name": ("a.test.js", SCRIPT, SCRIPT + "\nfunction expect() {\n}\n"),
    "a part of it": ("a.test.js", SCRIPT, SCRIPT + "\nconsole.assert = null;\n"),
    "a statement in between": ("a.test.js", SCRIPT, behind(SCRIPT, "'adds', () => {\n", "    return;\n")),
    "skip around": ("a.test.js", SCRIPT, in_front(SCRIPT, "  it('takes", "  it.skip('all', () => {\n")),
    "a call on loading": ("a.test.js", SCRIPT, SCRIPT + "\nlatest(expect);\n"),
    "another module": ("a.test.js", SCRIPT, SCRIPT.replace("../src/f", "./fake")),
    "an import by the name of a global": ("a.test.js", SCRIPT, "import { expect } from './fake';\n" + SCRIPT),
    "TestMain": ("a_test.go", GO, GO + "\nfunc TestMain(m *testing.M) {\n}\n"),
    "init": ("a_test.go", GO, GO + "\nfunc init() {\n\tos.Exit(0)\n}\n"),
    "Ruby, the same name": ("a_test.rb", RUBY, behind(RUBY, "f(1)\n  end\n", "\n  def test_a\n  end\n")),
    "Ruby, setup": ("a_test.rb", RUBY, behind(RUBY, "f(1)\n  end\n", "\n  def setup\n    skip\n  end\n")),
    "Java, before": ("FTest.java", JAVA, behind(JAVA, "f(1));\n  }\n", "\n  @Before\n  public void quiet() {\n  }\n")),
    "Java, an annotation": ("FTest.java", JAVA, in_front(JAVA, "  @Test\n", "  @Ignore\n")),
    "Java, another assertEquals": ("FTest.java", JAVA, in_front(JAVA, "import org", "import static fake.Fake.assertEquals;\n")),
    "Rust, another assert_eq": ("tests/a.rs", RUST, "use fake::assert_eq;\n" + RUST),
    "Rust, everything": ("tests/a.rs", RUST, "use fake::*;\n" + RUST),
    "Rust, an attribute": ("tests/a.rs", RUST, in_front(RUST, "fn adds", "#[ignore]\n")),
    "PHP, another function": ("FTest.php", "<?php\nuse function a;\n\na();\nb();\n", "<?php\nuse function a;\nuse function Fake\\b;\n\na();\nb();\n"),
    "C, a header": ("a_test.c", "int main(void) {\n  assert(f());\n}\n", '#include "fake.h"\nint main(void) {\n  assert(f());\n}\n'),
    "data": ("tests/expected.txt", "a\n", "a\nb\n"),
}  # fmt: skip


@pytest.mark.parametrize(("path", "old", "new"), ADDED.values(), ids=ADDED)
def test_what_was_added_to_a_test_file_is_no_news(path, old, new):
    assert only_adds(path, old.encode(), new.encode())


@pytest.mark.parametrize(("path", "old", "new"), REACHING.values(), ids=REACHING)
def test_what_reaches_the_tests_that_were_there_is_news(path, old, new):
    assert not only_adds(path, old.encode(), new.encode())


@pytest.mark.parametrize("path", ["test_a.py", "a.test.js"])
@pytest.mark.parametrize(
    "text",
    ["x" * 299_900, "(" * 299_900, "a." * 149_900, "a " * 149_900, "x_" * 149_900, "- " * 149_900, "\n" * 299_900,
     "it('a', () => {\n" * 18_000, "def f(): pass\n" * 21_000, "class A:\n  def f(self): self.a\n" * 8_500, "import a.b\n" * 27_000, "\0"],
    ids=lambda text: ascii(text[:20]),
)  # fmt: skip
def test_the_time_is_linear_in_the_size(path, text, whole):
    text = text if whole else text[: len(text) // 5]
    start = time.process_time()
    only_adds(path, text.encode(), text.encode() + b"\n\nx.y = 1\n")
    only_adds(path, b"x = 1\n", b"x = 1\n" + text.encode())
    assert time.process_time() - start < (10 if whole else 2)
