"""Content that is another format's, and real files that only look like it."""

import json
import time
from itertools import product

import pytest

from code_commit.changes import Edit, EditBlock, FileReplacement
from code_commit.verify import markdown
from code_commit.verify.escapes import find_lookalike
from code_commit.verify.formats import find_formats
from code_commit.verify.markdown import without_fences
from code_commit.verify.parts import Surroundings

CODE = "import os\n\n\ndef f():\n    return 1\n\n\ndef g():\n    return 2\n"
TEXT = "first line\nsecond line\nthird line\n"
PAGE = "# Title\n\nSome words.\n\n```sh\nmake\n```\n"

HUNK = "@@ -1,2 +1,2 @@\n-first line\n+1st line\n second line\n"
BOTH = "<<<<<<< HEAD\n    return 1\n=======\n    return 3\n>>>>>>> other\n"
SEARCH = "<<<<<<< SEARCH\n    return 1\n=======\n    return 3\n>>>>>>> REPLACE\n"
ANOTHER = "--- a/b.txt\n+++ b/b.txt\n" + HUNK


NEIGHBOR = "lib/b.py"
SURROUNDINGS = Surroundings({NEIGHBOR, "a.py"}.__contains__, "Let f return 3.\nAnd no more.\n")


def found(path: str, new: str, old: str | None) -> str:
    """Return all that is said about a file, with the fence that is certain to be none of its lines taken off."""
    change = without_fences(FileReplacement(path, new, 1), old)
    return " ".join(suspicion.fact for suspicion in find_formats(change, old, SURROUNDINGS))


def found_in_edit(new: str, find: str = "    return 1\n", path: str = "a.py", old: str = CODE) -> str:
    change = without_fences(EditBlock(path, (Edit(find, new, 3),), 1), old)
    return " ".join(suspicion.fact for suspicion in find_formats(change, old, SURROUNDINGS))


def numbered(text: str, form: str) -> str:
    return "".join(form.format(number, line) + "\n" for number, line in enumerate(text.split("\n")[:-1], 1))


def behind(sign: str, text: str = CODE) -> str:
    return "".join(
        (f"{sign}{line}".rstrip() if sign.strip() else line and sign + line) + "\n" for line in text.split("\n")[:-1]
    )


WRONG = {
    # the file, its new content, its old content (None: there is none), the words of the message
    "entities": ("a.py", CODE.replace("return 1", "return 1 &lt; 2 &amp;&amp; 3"), CODE, "escaped"),
    "all of it escaped": ("a.html", "&lt;p&gt;one&lt;/p&gt;\n", "<p>one</p>\n", "escaped"),
    "entities in new code": ("n.java", "class N {\n    List&lt;String&gt; names;\n}\n", None, "escaped"),
    "quotes as entities": ("a.py", CODE.replace("return 1", "return x[&quot;a&quot;]"), CODE, "escaped"),
    "a header as an entity": ("a.c", "#include &lt;stdio.h&gt;\nint x;\n", "#include <stdio.h>\nint y;\n", "escaped"),
    "escapes of JSON": ("a.js", "if (a \\u003c 2) {\n}\nlet b = 1;\n", "if (a < 2) {\n}\nlet b = 2;\n", "escaped"),
    "a new file in one line": ("n.md", "# N\\n\\none\\ntwo\n", None, "escaped"),
    "new code in one line": ("n.py", "import os\\n\\nx = 1\\n\n", None, "escaped"),
    "a string": ("a.py", CODE.replace("\n", "\\n") + "\n", CODE, "escaped"),
    "backslashes of a string": (
        "a.py",
        "A = r'\\\\d\\\\w'\nB = '\\\\n'\nC = 3\n",
        "A = r'\\d\\w'\nB = '\\n'\nC = 2\n",
        "escaped",
    ),
    "quotes of a string": ("a.c", '#include \\"a.h\\"\nf(\\"b\\");\ng();\n', '#include "a.h"\nf("b");\n', "escaped"),
    "escapes of Markdown": (
        "a.py",
        "def get\\_id(user\\_id):\n    return user\\_id\nx = 2\n",
        "def get_id(user_id):\n    return user_id\n",
        "escaped",
    ),
    "arguments of a call": ("a.py", json.dumps({"path": "a.py", "content": CODE}, indent=2), CODE, "escaped"),
    "a remark before it": ("a.css", "Here is the new `a.css` file:\n\na {\n}\nb {\n}\n", "a {\n}\n", "sentence"),
    "a remark behind it": ("a.py", f"{CODE}\nI left all the rest as it was.\n", CODE, "sentence"),
    "a remark in Chinese": ("a.js", "以下是代码。\nlet a = 2;\n", "let a = 2;\n", "sentence"),
    "half of it in a string": ("a.py", CODE.replace("f():\n    return 1\n", "f():\\n    return 3\\n"), CODE, "escaped"),
    "the path before it": ("a.py", f"a.py\n{CODE}", CODE, "names the file"),
    "the path after a word": ("a.py", f"File: `a.py`\n{CODE}", CODE, "names the file"),
    "the language before it": ("a.py", f"python\n{CODE}", CODE, "names the file"),
    "diff of git": ("a.txt", "diff --git a/a.txt b/a.txt\nindex 1..2 100644\n--- a/a.txt\n" + HUNK, TEXT, "diff"),
    "unified diff": ("a.txt", "--- a/a.txt\n+++ b/a.txt\n" + HUNK, TEXT, "diff"),
    "hunk": ("a.txt", HUNK, TEXT, "diff"),
    "hunk without numbers": ("a.py", "@@ ... @@\n-    return 1\n+    return 3\n", CODE, "diff"),
    "patch of an agent": ("a.py", "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n", CODE, "diff"),
    "the end of a patch": ("a.txt", f"{TEXT}third line\n*** End Patch\n", TEXT, "diff"),
    "body of a hunk": ("a.py", " def f():\n-    return 1\n+    return 3\n \n \n def g():\n", CODE, "diff"),
    "body in Markdown": ("README.md", " # Title\n \n-Some words.\n+Other words.\n", PAGE, "diff"),
    "body with other words": ("a.py", " def f():\n-    return 1.0\n+    return 3\n \n def h():\n", CODE, "diff"),
    "body with CRLF": ("a.txt", "-first line\r\n+1st\r\n second line\r\n", TEXT.replace("\n", "\r\n"), "diff"),
    "body of a number": ("VERSION", "-1.0\n+1.1\n", "1.0\n", "diff"),
    "signs in the whole file": ("a.py", CODE.replace("    return 1", "-    return 1\n+    return 3"), CODE, "diff"),
    "one plus sign": ("a.txt", TEXT.replace("second", "+another line\nsecond"), TEXT, "diff"),
    "diff of a new file": ("n.txt", "--- /dev/null\n+++ b/n.txt\n@@ -0,0 +1 @@\n+x\n", None, "diff"),
    "plus signs in new code": ("n.py", "+x = 1\n+y = 2\n", None, "diff"),
    "search and replace": ("a.txt", SEARCH, TEXT, "markers"),
    "two of them": ("a.py", f"{SEARCH}\n{SEARCH}", CODE, "markers"),
    "new code": ("n.py", "<<<<<<< SEARCH\n=======\nx = 1\n>>>>>>> REPLACE\n", None, "markers"),
    "signs as markers": (
        "a.py",
        "------- SEARCH\n    return 1\n=======\n    return 3\n+++++++ REPLACE\n",
        CODE,
        "markers",
    ),
    "conflict": ("a.py", "import sys\n" + CODE.replace("    return 1\n", BOTH), CODE, "markers"),
    "conflict at the top": ("a.txt", "<<<<<<< a\nfirst line\n=======\n1\n>>>>>>> b\nsecond line\nx\n", TEXT, "markers"),
    "conflict at the end": ("a.txt", "x\nsecond line\n<<<<<<< a\n3\n=======\nthird line\n>>>>>>> b\n", TEXT, "markers"),
    "conflict in Markdown": (
        "README.md",
        PAGE.replace("# Title\n", BOTH.replace("    return 1", "# Title")),
        PAGE,
        "markers",
    ),
    "1: ": ("a.py", numbered(CODE, "{}: {}"), CODE, "number"),
    "1 | ": ("a.txt", numbered(TEXT, "{:4} | {}"), TEXT, "number"),
    "cat -n": ("a.txt", numbered(TEXT, "{:6}\t{}"), TEXT, "number"),
    "arrows": ("a.md", numbered(PAGE, "{:6}\u2192{}"), PAGE, "number"),
    "numbers and CRLF": ("a.txt", numbered(TEXT, "{}: {}\r"), TEXT.replace("\n", "\r\n"), "number"),
    "some lines with numbers": ("a.py", "4: def f():\n5:     return 3\n", CODE, "number"),
    "numbers without blank lines": ("a.py", "1\timport os\n\n\n2\tdef f():\n3\t    return 1\n", CODE, "number"),
    "numbers in new code": ("n.py", "1: x = 1\n2: y = 2\n", None, "number"),
    "line of the codebase": ("src/a.txt", "--- src/a.txt ---\n" + TEXT, TEXT, "names a file"),
    "line of the codebase, new": ("n.py", "\n=== n.py ===\nx = 1\n", None, "names the file"),
    "fence of another language": ("a.py", f"```rust\n{CODE}```\n", CODE, "fence"),
    "fence with another inside": ("n.py", "```\nx\n```\ny\n```\nz\n```\n", None, "fence"),
    "fence in an unknown kind of file": ("n.zzz", "~~~\nx\n", None, "fence"),
    "fence and words": ("n.zzz", "```\nx\n```\nThat is all.\n", None, "fence"),
    "fence around what a test reads": ("fixtures/n.yml", "```yaml\na: 1\n```\n", None, "fence"),
    "fence around text": ("a.txt", f"\n```text\n{TEXT}```\n\n", TEXT, "fence"),
    "fence around Markdown": ("README.md", f"```markdown\n{PAGE}```\n", PAGE, "fence"),
    "fence that is closed outside the block": ("n.css", "```css\na {}\n", None, "fence"),
    "fence that is opened outside the block": ("n.css", "a {}\n```\n\n", "a {}\nb {}\n", "fence"),
    "words after the fence": ("n.py", "```python\nx = 1\n```\nThat is all.\n", None, "fence"),
    "numbers and L": ("n.zig", "L1: const a = 1;\nL2: const b = 2;\n", None, "number"),
    "numbers in an unknown kind of code": ("n.zzz", "1: a {\n2:   b\n3: }\n", None, "number"),
    "numbers with gaps": ("a.py", "1\tdef f():\n2\t    return 1\n7\tdef g():\n8\t    return 3\n", CODE, "number"),
    "numbers and hashes": ("a.py", numbered(CODE.replace("return 2", "return 4"), "{}#VR:{}"), CODE, "number"),
    "hashes and a header": ("a.py", "[snapshot 1-ab]\n" + numbered(CODE, "{}:3f| {}"), CODE, "number"),
    "a path and numbers": ("a.txt", numbered(TEXT, "a.txt:{}: {}"), TEXT, "number"),
    "a word and numbers": ("a.py", numbered(CODE, "Line {}: {}"), CODE, "number"),
    "a marker at the end": ("a.py", f"{CODE}>>>>>>> REPLACE\n", CODE, "markers"),
    "a marker first": ("a.md", f"<<<<<<< SEARCH\n{PAGE}", PAGE, "markers"),
    "thoughts first": ("a.py", f"<think>\nReturn 3.\n</think>\n\n{CODE}", CODE, "thoughts"),
    "elements around all": (
        "a.json",
        "<file><path>a.json</path><content>\n{}\n</content></file>\n",
        "{\n}\n",
        "<file>",
    ),
    "an element around CDATA": ("a.py", f"<content><![CDATA[\n{CODE}]]></content>\n", CODE, "<content>"),
    "an element that names the file": (
        "a.html",
        "<file>\n<path>a.html</path>\n<p>two</p>\n</file>\n",
        "<p>one</p>\n",
        "<file>",
    ),
    "a bold path": ("a.md", f"**a.md**\n{PAGE}", PAGE, "names the file"),
    "a remark on a function": ("a.py", f"Here f() returns 3 now:\n{CODE}", CODE, "sentence"),
    "plus signs in an unknown kind of file": ("n.zzz", "+x\n+y\n", None, "diff"),
    "diff in an unknown kind of file": ("n.zzz", "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n", None, "diff"),
    "search and replace in an unknown kind of file": (
        "n.zzz",
        "<<<<<<< SEARCH\n=======\nx\n>>>>>>> REPLACE\n",
        None,
        "markers",
    ),
    "label below": ("n.py", f"x = 1\n\n--- {NEIGHBOR} ---\n\n", None, "names a file"),
    "label in between": ("n.py", f"x = 1\n--- {NEIGHBOR} ---\ny = 1\n", None, "names a file"),
    "label of an outline": ("a.py", f"--- a.py (outline, 1,234 bytes) ---\n{CODE}", CODE, "names a file"),
    "label of lines": ("a.py", f"{CODE}--- a.py (lines 1-2, 5-9 of 99) ---\n", CODE, "names a file"),
    "label of a change": ("a.py", f"--- FILE REPLACEMENT a.py ---\n{CODE}", CODE, "names a file"),
    "label of a diff": ("a.py", f"--- FILE REPLACEMENT a.py (diff) ---\n{CODE}", CODE, "names a file"),
    "label of a removal": ("a.py", f"{CODE}--- FILE REMOVED gone.py ---\n", CODE, "names a file"),
    "label of notes": ("a.py", f"{CODE}--- NOTES ON THE FILES ABOVE ---\n", CODE, "names a file"),
    "words behind a fence": ("a.py", f"{CODE}\nx = 1\n```\n\nThis sets x.\n", CODE, "fence"),
    "label in a fence": ("a.py", f"```python\n--- a.py ---\n{CODE}```\n", CODE, "names a file"),
    "task": ("a.py", f"{CODE}\n[query]\nLet f return 3.\n", CODE, "task"),
    "closing tag": ("a.py", f"{CODE}</content>\n", CODE, "</content>"),
    "call of a tool": ("n.md", '# T\n</content>\n<parameter name="i">New</parameter>\n</invoke>\n', None, "</content>"),
    "closing tag on the last line": ("a.py", f"{CODE.rstrip()}</content>\n", CODE, "</content>"),
    "closing tag of DeepSeek": ("a.py", f"{CODE}</\uff5cDSML\uff5cparameter>\n", CODE, "DSML"),
    "CDATA": ("n.py", "<![CDATA[\nx = 1\n]]>\n", None, "CDATA"),
    "opening tag": ("n.py", "<content>\nx = 1\n", None, "<content>"),
    "tags around code": ("a.py", f"<file>\n{CODE}</file>\n", CODE, "<file>"),
    "tag with the path": ("n.py", '<file path="n.py">\nx = 1\n</file>\n', None, "<file>"),
    "a quotation": ("a.py", behind("> ", CODE.replace("1", "3")), CODE, "same signs"),
    "a column": ("a.py", behind("| ", CODE.replace("1", "3")), CODE, "same signs"),
    "items": ("a.py", behind("- "), CODE, "same signs"),
    "a step to the right": ("a.py", behind("    ", CODE.replace("1", "3")), CODE, "same signs"),
    "comments alone": ("a.py", behind("# ", CODE), CODE, "same signs"),
    "token": ("a.py", f"{CODE}<|im_end|>\n", CODE, "<|im_end|>"),
    "token behind the last line": ("n.py", "x = 1<\uff5cend\u2581of\u2581sentence\uff5c>\n", None, "belongs to it"),
    "heredoc": ("src/n.sh", "cat > src/n.sh <<'EOF'\necho\nEOF\n", None, "command"),
    "fence around new Markdown": ("new.md", f"````md\n{PAGE}````\n", None, "fence"),
}

RIGHT = {
    "entities in a string": ("a.py", CODE.replace("return 1", "return 'a &lt; b'"), CODE),
    "entities in a page of code": (
        "a.tsx",
        "f(\n<p>\nTerms &amp; more, a &lt; b\n</p>\n)\n",
        "f(\n<p>\nTerms\n</p>\n)\n",
    ),
    "entities in a comment": ("A.java", "/**\n * a &lt; b\n */\nint x; // a &amp; b\n", "int x;\n"),
    "entities in a docstring": ("a.py", f'"""\nIt is a &lt; b.\n"""\n{CODE}', CODE),
    "a comment before it": ("a.py", f"# Here is what this file does.\n{CODE}", CODE),
    "a comment of batch": ("a.bat", "REM This builds all the parts.\nmake\n", "make\n"),
    "a heading before it": ("a.md", f"Here is what this file does:\n{TEXT}", TEXT),
    "targets before it": ("Makefile", "all check test clean:\na:\n\ttrue\n", "a:\n\ttrue\n"),
    "code that reads as prose": ("a.cob", "Move a to b.\nMove one a to b.\n", "Move a to b.\n"),
    "one backslash more": ("a.py", "A = '\\\\d'\nB = '\\n'\nC = '\\t'\n", "A = '\\d'\nB = '\\n'\nC = '\\t'\n"),
    "a string in a string": ("a.py", 'A = "\\\\"a\\\\""\nB = "b"\n', 'A = "\\"a\\""\nB = "b"\n'),
    "lines that go on": ("Makefile", "A = a\\\nB = b\\\nC = c\n", "A = a\nB = b\nC = c\n"),
    "escapes of a pattern's dots": (
        "a.py",
        "a('b\\.c')\nb('d\\.e')\nimport os.path\n",
        "a('b.c')\nb('d.e')\nimport os.path\n",
    ),
    "escapes of a pattern's only dots": ("a.py", "a.b('c\\.d')\na.b('e\\.f')\n", "a.b('c.d')\na.b('e.f')\n"),
    "quotes that a string lacked": ("a.c", 'a("b \\"c\\"");\nd("\\"e\\"");\n', 'a("b "c"");\nd(""e"");\n'),
    "backslashes that a string lacked": ("a.py", 'A = "\\\\d"\nB = "\\\\w"\n', 'A = "\\d"\nB = "\\w"\n'),
    "escapes in a document": ("a.md", "get\\_id and user\\_id\nuser\\_name\n", "get_id and user_id\nuser_name\n"),
    "lines in a string": (
        "a.py",
        "A = 'one\\ntwo'\nB = 1\nC = 2\nD = 3\n",
        "A = '''\none\ntwo\n'''\nB = 1\nC = 2\nD = 3\n",
    ),
    "line ends in a string": ("n.py", 'print("a\\nb\\nc\\nd")\n', None),
    "commands that begin with n": ("n.tex", "\\newcommand\\x\\newpage\\noindent\\nolimits\n", None),
    "CDATA in a page": ("n.xml", "<a>\n<![CDATA[\nx\n]]>\n</a>\n", None),
    "a page with entities": ("a.html", "<p>1 &lt; 2</p>\n", "<p>1</p>\n"),
    "a list of paths": ("a.txt", "a.txt\nb.txt\n", "a.txt\n"),
    "a word first": ("a.txt", f"python\n{TEXT}", TEXT),
    "a quotation of a document": ("a.md", behind("> ", TEXT), TEXT),
    "comments in place of others": ("a.py", "# one\n# two\n# 3\n# four\n", "# one\n# two\n# three\n# four\n"),
    "one line that stays outside": ("a.py", "if x:\n" + behind("    "), CODE),
    "a word before each line": ("a.lst", behind("test_", "a\nb\nc\n"), "a\nb\nc\n"),
    "a step to the left": ("a.py", CODE, behind("    ")),
    "list": ("a.md", "- a\n- b\n- c\n", "- a\n- b\n"),
    "lines that become a list": ("a.txt", "- first line\n- second line\n", TEXT),
    "new list": ("a.md", "+ a\n+ b\n", None),
    "another mark for a list": ("a.md", "+ a\n+ b\n", "- a\n- b\n"),
    "list in YAML": ("a.yml", "- a: 1\n- b: 2\n", "- a: 1\n"),
    "map of numbers": ("a.yml", "1: a\n2: b\n", None),
    "table of numbers": ("a.tsv", "1\ta\n2\tb\n", None),
    "more numbers": ("a.txt", "1: a\n2: b\n", "1: a\n"),
    "front matter": ("a.md", "---\ntitle: x\n---\n# Title\n", "# Title\n"),
    "front matter of plus signs": ("a.md", "+++\ntitle = 'x'\n+++\n# Title\n", "# Title\n"),
    "patch": ("fix.patch", HUNK, TEXT),
    "diff that is to be expected": ("expected.txt", ANOTHER, None),
    "data of a test": ("tests/a.out", ANOTHER, TEXT),
    "a word that RDoc marks": ("README.rdoc", "One line.\n+body+ is set.\nAnd so on.\n", "One line.\nAnd so on.\n"),
    "more of a diff": ("example.txt", ANOTHER + HUNK, ANOTHER),
    "semantic patch": ("a.cocci", "@@\nexpression e;\n@@\n- f(e)\n+ g(e)\n", "@ name @\nexpression e;\n@@\n- f(e)\n"),
    "diff in a tutorial": ("a.md", f"{PAGE}\n```diff\n{HUNK}```\n", PAGE),
    "signs in an example": ("a.md", "```diff\n+ some\n++ words\n```\n", "```diff\n- some\n-- words\n```\n"),
    "options": ("requirements.txt", "-r base.txt\nflask\n", "flask\n"),
    "option in documentation": ("a.txt", "--cc::\n\tcombined\n", "-cc::\n\tcombined\n"),
    "shorter rules": ("a.adoc", "----\n$ make\n----\n", "-----\n$ make\n-----\n"),
    "continued list": ("a.adoc", "So:\n+\n----\n$ make\n----\n", "So:\n----\n$ make\n----\n"),
    "negative number": ("a.csv", "-1\n2\n", "1\n2\n"),
    "empty item": ("a.md", "- a\n-\n- b\n\n", "- a\n- b\n\n"),
    "numbers in columns": ("a.py", "x = (1\n-2\n+3)\n", "x = (1\n-2)\n"),
    "class variable of Ruby": ("a.rb", "@@x = 2\n", "@@x = 1\n"),
    "grid": ("a.txt", "+---+---+\n| a | b |\n+---+---+\n", None),
    "conflict in a tutorial": ("a.md", f"{PAGE}\nA conflict:\n\n```\n{BOTH}```\n", PAGE),
    "conflict in a test": ("test_merge.py", f'{CODE}\nTEXT = """\n{BOTH}"""\n', CODE),
    "conflict that is to be expected": ("fixtures/a", BOTH, "    return 1\n"),
    "another conflict": ("merge.txt", BOTH.replace("3", "4"), BOTH),
    "headings": ("a.rst", "<<<<<<<\n=======\n>>>>>>>\n", "<<<<<<<\n=======\n"),
    "an underline at the end": ("a.md", "Title\n=====\n\nPart\n=====\n", "Title\n"),
    "marker of another kind": ("merge.txt", "text\n>>>>>>> b\n", "<<<<<<< a\ntext\n"),
    "names with numbers": ("a.js", "let r1 = get()\nlet r2 = get()\nlet r3 = get()\n", "get()\nget()\nx\n"),
    "other cases": (
        "a.c",
        "case 1: f(1); break;\ncase 2: f(2); break;\ncase 3: f(3); break;\n",
        "case 1: g(1); break;\ncase 2: g(2); break;\nbreak;\n",
    ),
    "two numbers": ("a.txt", "1:first line\n2:second line\nthird line\n", TEXT),
    "thoughts that it had": ("a.md", "<think>\nx\n</think>\ny\n", "<think>\nx\n</think>\n"),
    "a generic function": ("a.ts", "<T>(x: T) => x;\nf<B>(y)\n", "(x) => x;\n"),
    "an element in a comment": ("a.xml", "<a/>\n<!--b>\nx\n</b-->\n", "<a/>\n"),
    "a new root": ("a.xml", "<list>\n<a/>\n</list>\n", "<a/>\n"),
    "fences at both ends": ("README.md", f"```sh\nmake\n```\n\n{PAGE}", PAGE),
    "example alone": ("example.md", "```python\nx = 1\n```\n", None),
    "examples without words": ("n.rules", "```sh\na\n```\n\n```sh\nb\n```\n", None),
    "fence in a template": ("prompt.j2", "```json\n{{ x }}\n```\n", None),
    "fence that Typst has": ("a.typ", "```rust\nx\n```\n", None),
    "comments of SQL": ("n.sql", "-- nothing\n-- to do\n", None),
    "signs in a table": ("n.csv", "-1,+2\n+3,-4\n", None),
    "numbers in a table": ("n.dat", "1\t  a\n2\t  b\n", None),
    "label of a chapter": ("n.txt", "--- one ---\nx\n", None),
    "label that was there": ("a.py", f"--- {NEIGHBOR} ---\nx\n", f"--- {NEIGHBOR} ---\n"),
    "end of a page": ("footer.php", "<p>x</p>\n</div>\n</body>\n</html>\n", None),
    "component": ("A.vue", "<template>\n  <B />\n</template>\n<script setup>\n</script>\n", None),
    "template of a chat": ("chat.jinja", "<|im_start|>user\n{{ x }}<|im_end|>\n", None),
    "tag in a patch": ("n.patch", " <a>\n-</b>\n+</c>\n </d>\n", None),
    "heredoc among others": ("n.sh", "cat > n.txt <<EOF\nx\nEOF\n", None),
    "section called query": ("n.ini", "[query]\nlimit = 5\n", None),
    "escapes in a pattern": ("a.js", "a < b;\ns.replace(/\\u003c/, '');\n", "a < b;\ns.replace(/</, '');\n"),
    "a patch in a document": ("a.md", "Text.\n\n*** Begin Patch\n*** End Patch\n", "Text.\n"),
    "fence in a string": ("a.py", 'X = """\n```\nx\n```\n"""\n', CODE),
    "another example": ("example.txt", "```\nb\n```\n", "```\na\n```\n"),
    "label of another file": ("a.txt", "--- b.txt ---\nx\n", None),
    "empty": ("a.py", "", CODE),
}


@pytest.mark.parametrize(("path", "new", "old", "words"), WRONG.values(), ids=WRONG)
def test_content_in_another_format_is_found(path, new, old, words):
    assert words in found(path, new, old)


@pytest.mark.parametrize(("path", "new", "old", "words"), WRONG.values(), ids=WRONG)
def test_line_ends_make_no_other_format(path, new, old, words):
    new, old = (text and text.replace("\r\n", "\n") for text in (new, old))
    of_windows = [text and text.replace("\n", "\r\n") for text in (new, old)]
    assert all(words in found(path, *texts) for texts in ((new, of_windows[1]), (of_windows[0], old), of_windows))


@pytest.mark.parametrize(("path", "new", "old"), RIGHT.values(), ids=RIGHT)
def test_what_real_files_hold_passes(path, new, old):
    assert found(path, new, old) == ""


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_a_file_that_was_like_that_may_stay_so(case):
    path, new, _, _ = case
    assert found(path, new, new) == ""


def test_plain_code_asks_for_no_language(monkeypatch):
    def refuse(path: str):
        raise AssertionError(f"the languages of {path} were looked up, which takes 40 ms")

    monkeypatch.setattr(markdown, "_languages", refuse)
    for old in (None, CODE):
        assert found("a.py", f"{CODE}\n\ndef h():\n    return 3\n", old) == ""
    assert found("a.py", f'{CODE}\n\ndef h():\n    return "3\\n"\n', CODE) == ""


def test_an_own_label_at_an_end_is_certain_where_its_file_is_there():
    for new, is_certain in {
        f"--- {NEIGHBOR} ---\nx\n": True,
        f"x\n--- {NEIGHBOR} ---\ny\n": False,
        "x\n--- FILE REMOVED gone.py ---\n": False,
    }.items():
        (label,) = find_formats(FileReplacement("n.py", new, 1), None, SURROUNDINGS)
        assert label.may_be_meant != is_certain


@pytest.mark.parametrize(
    ("new", "words"),
    [
        ("```python\n    return 3\n", "fence"),
        ("```rust\n    return 3\n```\n", "fence"),
        ("-    return 1\n+    return 3\n", "diff"),
        (SEARCH, "markers"),
        ("5:     return 3\n", "number"),
        ("5:     return 3\n6:     # so\n", "number"),
        ("1 | def f():\n2 |     return 3\n", "number"),
        ("4:a3|def f():\n5:0f|    return 1\n6:77|\n7:9c|\n8:1e|def g():\n", "number"),
        ("=======\n    return 3\n", "markers"),
        ("    return 3\n>>>>>>> REPLACE\n", "markers"),
        ("<thinking>\nThree.\n</thinking>\n    return 3\n", "thoughts"),
        (f"    return 3\n--- {NEIGHBOR} ---\n", "names a file"),
        ("    return 3\n</content>\n", "</content>"),
        ("    return a &amp;&amp; b\n", "escaped"),
        ("    return 1\\n    # so\n", "escaped"),
        ("<![CDATA[    return 3]]>\n", "CDATA"),
    ],
)
def test_the_lines_of_an_edit_in_another_format_are_found(new, words):
    assert words in found_in_edit(new)


def test_what_the_edits_of_real_files_hold_passes():
    for new in (
        "    print('return 1\\n    x')\n",
        "    return 1 # \\n x\n",
        "    return 1\\nu\n",
        "    1: 'a',\n    2: 'b',\n",
        "3: x\n",
        "    return 3\n```\nx\n```\n",
        "    return -1\n",
    ):
        assert found_in_edit(new) == ""
    assert found_in_edit("```\n", "```\n", old='x = """\n```\ntext\n```\n"""\n') == ""
    wrapped = EditBlock("a.jsx", (Edit("a\n", "<Box>\n", 3), Edit("c\n", "</Box>\n", 6)), 1)
    assert list(find_formats(wrapped, "a\nb\nc\n", SURROUNDINGS)) == []


@pytest.mark.parametrize(
    "line",
    ["<<<<<<< a\n", "<<<<<<<\n=======\n", "```\n", "```\n\n", "\n", " ", "1: x\n", "9", "+x\n", "-", "--- a ", "@@ -1", "=====\n", "------- SEARCH\n"],
    ids=ascii,
)  # fmt: skip
def test_the_time_is_linear_in_the_size(line, whole):
    size = 2_000_000 if whole else 400_000
    start = time.process_time()
    found("a.py", line * (size // len(line)) + "x", "old\n")
    assert time.process_time() - start < size / 400_000


@pytest.mark.parametrize("old", ["=" * 2_000_000, "x\n" * 1_000_000, "x\n=" * 600_000], ids=["line", "lines", "pairs"])
def test_many_blocks_between_markers_do_not_each_cost_the_old_file(old, whole):
    part = 1 if whole else 5
    start = time.process_time()
    found("a.py", "x\n<<<<<<< a\n=\n=======\n====\n>>>>>>> b\n" * (50_000 // part), old[: len(old) // part])
    assert time.process_time() - start < 5 / part


ALIKE = {
    # the file, a part of the answer, and the character that is told
    "quotes": ("a.py", "    print(“a - b”, x)\n", "201C"),
    "blanks before a line": ("a.py", "\u00a0\u00a0\u00a0\u00a0return 7\n", "00A0"),
    "a sign": ("a.py", "    return a \u2212 b\n", "2212"),
    "wide characters": ("a.c", "int f\uff08int a\uff09 {\n", "FF08"),
    "a dash for two": ("a.py", "    return a\u2014b\n", "2014"),
    "a blank without width": ("a.py", "    return a\u200b - b\n", "200B"),
    "a string": ("a.py", "    print('it\u2019s')\n", ""),
    "a comment": ("a.py", "    # it\u2019s\n", ""),
    "a docstring": ("a.py", '    """\n    It\u2019s.\n    """\n', ""),
    "a document": ("a.md", "    print(“a - b”, x)\n", ""),
    "another line": ("a.py", "    print(“c”)\n", ""),
    "a page": ("a.jsx", "<p>\nIt\u2019s.\n</p>\n", ""),
}


@pytest.mark.parametrize(("path", "new", "told"), ALIKE.values(), ids=ALIKE)
def test_lines_of_code_with_characters_that_look_alike_are_found(path, new, told):
    plain = "    print(\"a - b\", x)\n    return a - b\n    return a--b\nint f(int a) {\n    print('it's')\n    # it's\n    It's.\nIt's.\n"
    old = f"{plain}{'<p></p>' if path == 'a.jsx' else ''}\n"
    changes = FileReplacement(path, new, 1), EditBlock(path, (Edit("    # it's\n", new, 3),), 1)
    for change, text in product(changes, (old, old.replace("\n", "\r\n"))):
        found = find_lookalike(change, text)
        assert (found.fact.split("U+")[1][:4] if found else "") == told
        assert find_lookalike(change, f"{old}{new}") is None
    assert find_lookalike(changes[0], None) is None


NOTES, WITH_FENCE = "# Use\n\nText here.\n\nRun it now.\n", "# Use\n\n```sh\nmake\n```\n\nText.\n"


@pytest.mark.parametrize(
    ("path", "new", "old"),
    [
        ("a.md", f"{NOTES}```\n", NOTES),
        ("a.md", f"```markdown\n{NOTES}", NOTES),
        ("a.md", f"```md\n{WITH_FENCE}", WITH_FENCE),
        ("a.md", f"{WITH_FENCE}```", WITH_FENCE),
        ("README", f"{NOTES}~~~\n", NOTES),
        ("a.rst", f"{NOTES}```\n\n", NOTES),
        ("new.md", f"{NOTES}```\n", None),
        ("new.txt", f"```\n{NOTES}", None),
    ],
)
def test_a_fence_at_one_end_of_a_document_that_nothing_closes_is_found(path, new, old):
    assert "fence" in found(path, new, old)
    if not new.startswith("`"):
        assert found(path, new, f"{old or ''}```\nx\n") == "", "the old one had an open fence too"
    assert found(f"testdata/{path}", new, None) == ""


def test_the_lines_of_an_edit_leave_no_fence_of_a_document_open():
    for find, new, is_found in (
        ("Text.\n", "Texts.\n```\n", True),
        ("Text.\n", "```md\nTexts.\n", True),
        ("make\n```\n", "make all\n```\n", False),
        ("```sh\nmake\n", "```bash\nmake all\n", False),
        ("Text.\n", "Or:\n\n```sh\nmake all\n```\n", False),
    ):
        assert bool(found_in_edit(new, find, old=WITH_FENCE, path="a.md")) == is_found
    titles = "Two\n~~~\n\nThree\n~~~\n"
    for path, is_found in (("a.rst", False), ("a.md", True)):
        page = f"One\n~~~\n\n{titles}\nFour\n~~~\n"
        assert bool(found_in_edit(titles[9:], titles, old=page, path=path)) == is_found
    edits = Edit("one\n", "```py\none\n", 3), Edit("two\n", "two\n```\n", 7)
    for answer, is_found in ((edits, False), (edits[:1], True)):
        assert bool(list(find_formats(EditBlock("a.md", answer, 1), "one\ntwo\n", SURROUNDINGS))) == is_found
