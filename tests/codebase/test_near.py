from code_commit.codebase.near import find_near, imports_any, is_test, without_imports
from code_commit.codebase.text import Section, file_section


def test_of_files_with_one_name_the_nearest_is_meant_by_an_import():
    texts = {
        "a/src/lib.rs": "mod util;\n",
        "b/src/lib.rs": "mod util;\n",
        "a/b/lib.rs": "",
        "README.md": "",
        "a/NEWS.md": "",
        "b/util.md": "",
    }
    texts |= {"tests/it.rs": "use crate::util::It;\n", "tests/a/util.rs": "", "a/src/util.rs": "", "b/src/util.rs": ""}
    files = [Section(name, 9, file_section(name, text)) for name, text in texts.items()]
    assert find_near(files, ["tests/it.rs"]) == {"tests/it.rs", "tests/a/util.rs"}
    assert find_near(files, ["b/src/util.rs"]) == {"b/src/util.rs"}, "not what imports it"
    assert find_near(files, ["b/src/lib.rs"]) == {"b/src/util.rs", "b/src/lib.rs"}
    assert find_near(files, ["README.md"]) == {"README.md"}
    assert find_near([*files, *(Section(name, 1, file_section(name, "")) for name in (".a", ".b"))], [".a"]) == {".a"}
    far = {"a/x.py": "", "b/x.py": "", "c/y.py": "import x\n"}
    files = [Section(name, 9, file_section(name, text)) for name, text in far.items()]
    assert find_near(files, ["c/y.py"]) == {"c/y.py"}, "nobody knows which one is meant"
    assert find_near(files[1:], ["c/y.py"]) == {"c/y.py", "b/x.py"}


def test_an_imported_path_means_the_file_in_its_folder():
    texts = {
        "app/run.py": "from lib.core import x\nfrom lib.core.names import y\nimport lib.tools as core\n",
        "lib/core/__init__.py": "",
        "lib/core/names.py": "",
        "app/core.py": "",
        "app/names.py": "",
        "other/tools.py": "",
    }
    files = [Section(name, 9, file_section(name, text)) for name, text in texts.items()]
    found = find_near(files, ["app/run.py"])
    assert {"lib/core/__init__.py", "lib/core/names.py"} <= found
    assert "app/names.py" not in found, "its folder is not the one that is imported from"
    assert find_near(files, ["lib/core/names.py"]) == {"lib/core/names.py"}


def test_where_an_import_quotes_its_path_its_other_words_mean_no_file():
    texts = {
        "src/range.js": "import { format, sign } from './number.js'\nimport {\n  add\n} from '../lib/sum.js'\n",
        "src/number.js": "",
        "lib/sum.js": "",
    }
    texts |= dict.fromkeys(["docs/import.js", "docs/format.js", "src/sign.js", "src/add.js", "src/from.js"], "")
    files = [Section(name, 9, file_section(name, text)) for name, text in texts.items()]
    assert find_near(files, ["src/range.js"]) == {"src/range.js", "src/number.js", "lib/sum.js"}


def test_a_test_is_known_by_its_name_or_its_folder():
    tests = (
        "tests/x.py",
        "test_x.py",
        "x_spec.rb",
        "CoreTest.java",
        "src/x.test.ts",
        "src/x.spec.tsx",
        "b/index.test.js",
    )
    others = ("src/x.py", "src/x.d.ts", "src/test.ts", "src/x.tests", ".test.js", "latest.ts")
    assert [path for path in (*tests, *others) if is_test(path)] == [*tests, ".test.js"]


def test_a_test_that_stands_beside_its_source_is_near_and_no_import_means_it():
    texts = {"src/a/index.ts": "import { x } from '../b/x'\n", "src/b/x.ts": "", "src/c/x.ts": ""}
    texts |= dict.fromkeys(["src/a/index.test.ts", "src/b/x.test.ts", "src/b/index.test.ts", "src/c/x.test.ts"], "")
    files = [Section(name, 9, file_section(name, text)) for name, text in texts.items()]
    assert find_near(files, ["src/a/index.ts"]) == {"src/a/index.ts", "src/a/index.test.ts", "src/b/x.ts"}
    assert find_near(files, ["src/b/x.ts"]) == {"src/b/x.ts", "src/b/x.test.ts"}, "the nearest of one name"


def test_what_lists_the_modules_of_a_folder_imports_them():
    for text, imports in (("mod arg;\n", True), ("from .arg import x\n", True), ("x = 'arg'\n", False)):
        assert imports_any(Section("lib/all.py", 9, file_section("lib/all.py", text)), ["lib/arg.py"]) is imports
    assert without_imports("import a\nfrom b import (\n    c,\n)\na.d()\n").split() == ["a.d()"]
