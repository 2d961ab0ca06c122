"""Changes in the formats of other tools that stand beside good blocks: tool calls, JSON, commands, files without a fence."""

import json
import time

import pytest
from test_notes import BLOCK, FENCE, NEW, root, suspected

__all__ = ["root"]  # the fixture

PATH = "lib/b.py"
CALL = {"path": PATH, "content": NEW}
EDIT = {"command": "str_replace", "path": f"/repo/{PATH}", "old_str": "    return 1", "new_str": "    return 3"}
LOST = {
    "a tool call": f"<tool_call>\n{json.dumps({'name': 'write', 'arguments': CALL})}\n</tool_call>\n",
    "a tool call of JSON in JSON": json.dumps({"name": "write", "arguments": json.dumps(CALL)}) + "\n",
    "a list of edits in a string": json.dumps(
        {"edits": json.dumps([{"old": "    return 1", "new": "    return 3"}]), "path": PATH}
    )
    + "\n",
    "an edit as a call": json.dumps(EDIT) + "\n",
    "a call on many lines": f"```json\n{json.dumps(EDIT, indent=2)}\n```\n",
    "a list of files": f"```json\n{json.dumps({'files': [{'path': 'lib/x.py', 'content': ''}, CALL]})}\n```\n",
    "a map of files": json.dumps({PATH: NEW}) + "\n",
    "a function with parameters": f"<function=write>\n<parameter=path>{PATH}</parameter>\n<parameter=text>{NEW}</parameter>\n",
    "elements of other lines": f"<write> <path>{PATH}</path> <text>import os\n\nprint(os.name)\n</text></write>\n",
    "parameters of other lines": f"<function=write>\n<parameter=path>\n{PATH}\n</parameter>\n<parameter=text>\nimport os\n\nprint(os.name)\n</parameter>\n",
    "elements with a prefix": f'<|X|call>\n<|X|arg name="path">{PATH}</|X|arg>\n<|X|arg name="text">import os\nos.abort()</|X|arg>\n',
    "markup in an element": f"<write><path>{PATH}</path><text>\n<p>one</p>\n<p>two</p>\n</text></write>\n",
    "an edit of elements": f"<edit><path>{PATH}</path><old>    return 1</old><new>    return 3</new></edit>\n",
    "a call of Python": f"<|python_tag|>write(path='{PATH}', content={json.dumps(NEW)})\n",
    "a token of calls": f"[TOOL_CALLS][{json.dumps({'name': 'write', 'arguments': CALL})}]\n",
    "a script": f'```python\nPath(\'{PATH}\').write_text("""{NEW}""")\n```\n',
    "YAML": f"```yaml\n- path: {PATH}\n  content: |\n    def b():\n        return 3\n```\n",
    "a tag with the path": f'<anyAction type="file" filePath="{PATH}">\n{NEW}</anyAction>\n',
    "a heredoc that appends": f"cat >> {PATH} <<'EOF'\nx = 1\nEOF\n",
    "tee": f"```bash\nsudo tee {PATH} <<'EOF'\nx = 1\nEOF\n```\n",
    "a command behind another": f"```sh\nmkdir -p lib && cat > {PATH} <<'EOF'\nx = 1\nEOF\n```\n",
    "sed": f"```sh\nsed -i 's/return 1/return 3/' {PATH}\n```\n",
    "perl": f"Run this:\n\n    perl -pi -e 's/1/3/' {PATH}\n\n",
    "rm": f"```sh\nrm -f {PATH}\n```\n",
    "git mv": f"$ git mv {PATH} lib/d.py\n",
    "a path alone": f"{PATH}\n{NEW}",
    "a path and a colon": f"{PATH}:\n\n{NEW}",
    "words before the path": f"BEGIN FILE: {PATH}\n{NEW}END FILE\n",
    "a heading": f"## `{PATH}`\n\n{NEW}",
    "signs": f"=== {PATH} ===\n{NEW}",
    "a comment": f"# {PATH}\n{NEW}",
    "a tag of the path": f"<{PATH}>\n{NEW}</{PATH}>\n",
    "our carets in bold": f"**^^^{PATH}**\n{NEW}**^^^end**\n",
    "carets of another script": f"\uff3e\uff3e\uff3e{PATH}\n{NEW}\uff3e\uff3e\uff3eend\n",
    "letters like carets": f"\u02c6\u02c6\u02c6{PATH}\n{NEW}\u02c6\u02c6\u02c6end\n",
    "an absolute path in a tag": f"<write>\n<path>/workspace/{PATH}</path>\n<text>\n{NEW}</text>\n</write>\n",
    "brackets": f"<<<{PATH}\n{NEW}>>>\n",
    "code below the path": f"In {PATH}:\n\n    def b():\n        return 3\n\n",
    "a quotation": "".join(f"> {line}\n" for line in f"{PATH}\n{FENCE}".split("\n")),
    "details": f"<details><summary>{PATH}</summary>\n\n{FENCE}</details>\n",
}
NOTHING_LOST = {
    "a message of a linter": json.dumps({"file": PATH, "line": 3, "message": "returns 1 and not 2"}) + "\n",
    "messages": f"```json\n{json.dumps([{'path': PATH, 'rule': 'E501', 'fix': None}], indent=1)}\n```\n",
    "a setting": json.dumps({"files": [PATH, "a.md"], "include": "lib"}) + "\n",
    "a call that reads": f"<tool_call>\n{json.dumps({'name': 'read', 'arguments': {'path': PATH}})}\n</tool_call>\n",
    "a call with what is there": json.dumps({"path": PATH, "content": "def c():\n    return 2\n"}) + "\n",
    "a script that runs it": f"```sh\npython {PATH} > out.txt 2>&1\ngrep -n return {PATH}\nsed -n 1,5p {PATH}\n```\n",
    "commands that leave it": f"```sh\ncp {PATH} /tmp/b.py\ngit add {PATH}\ndiff {PATH} /tmp/b.py\n```\n",
    "an arrow": f"```\nlib/a.py -> {PATH}\nlib/a.py => {PATH}\n```\n",
    "a traceback": f'File "{PATH}", line 2, in b\n    return 1\nValueError\n',
    "an absolute path and prose": f"/workspace/{PATH}\n\nIt returns 1, as before.\n",
    "a path and prose": f"## {PATH}\n\nIt returns 1, as before.\n\nFile: {PATH}\nNot changed.\n",
    "a path and its lines": f"{PATH}:\n\n    def c():\n        return 2\n\nThat is right.\n",
    "an element that reads": f"<read>\n<name>{PATH}</name>\n<lines>1-9</lines>\n</read>\n",
    "elements with what is there": f"<read><name>{PATH}</name><text>\ndef c():\n    return 2\n</text></read>\n",
    "tags that nothing opens": f"<name>{PATH}</name>\n</text>\n<text\n</text>\n",
    "a session": f"```\n$ cat {PATH}\ndef c():\n    return 2\n$ pytest -q\n```\n",
    "a table": f"| file | change |\n| --- | --- |\n| {PATH} | none |\n",
    "prose": f"I remove nothing of {PATH}; rm {PATH} would be wrong.\n",
}


@pytest.mark.parametrize("notes", LOST.values(), ids=LOST)
def test_a_change_in_the_format_of_another_tool_is_suspected(root, notes):
    assert [path for path, _ in suspected(root, notes + BLOCK)] == [PATH]
    assert [path for path, _ in suspected(root, f"{BLOCK}\n{notes}")] == [PATH]
    assert suspected(root, f"{notes}^^^{PATH}\nx = 1\n^^^end\n") == [], "a block changes it"


@pytest.mark.parametrize("notes", NOTHING_LOST.values(), ids=NOTHING_LOST)
def test_what_only_speaks_of_a_file_passes(root, notes):
    assert suspected(root, notes + BLOCK) == []
    assert suspected(root, f"{BLOCK}\n{notes}") == []


@pytest.mark.parametrize(
    "line",
    [
        f'"{PATH}"\n',
        f'{{"{PATH}": "x\n',
        f"rm {PATH}\n",
        f"> {PATH}\n",
        f"{PATH}:\n x\n",
        f"<p>{PATH}</p>\n",
        "<p>",
        "<a b='",
        '"' * 9,
        "`x",
    ],
    ids=ascii,
)
def test_the_time_is_linear_in_the_size(root, line, whole):
    size = 2_000_000 if whole else 200_000
    start = time.process_time()
    suspected(root, line * (size // len(line)) + f"\n{BLOCK}")
    assert time.process_time() - start < max(2, size / 100_000)
