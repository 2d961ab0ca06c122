"""Odd surroundings: limits, closed streams, missing variables. The right exit code, a message, and a whole tree."""

import ast
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import CODE_COMMIT, git, recorded, tree

import code_commit

OK = "^^^ok.txt\nok\n^^^end\n"
HUGE = f"^^^ok.txt\n{'x' * 50_000_000}\n^^^end\n"


def run_by_shell(root: Path, before: str, answer: str = OK, after: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command with a recorded answer in a shell, after other words of it and before others."""
    words = ["sh", "-c", f'{before} "$@" {after}', "sh", *CODE_COMMIT, *recorded(root, answer), "--max-repairs", "0"]
    return subprocess.run(words, cwd=root, capture_output=True, text=True, check=False, timeout=180)


SHORTAGES = {
    "files at the start": ("ulimit -n 6; exec", OK, "Too many open files"),
    "files for git": ("ulimit -n 11; exec", OK, "Too many open files"),
    "memory for the answer": ("ulimit -d 100000; exec", HUGE, "out of memory"),
    "bytes of a file": ("ulimit -f 4; exec", OK, "File too large"),
}


@pytest.mark.parametrize(("before", "answer", "said"), SHORTAGES.values(), ids=SHORTAGES)
def test_a_shortage_is_told_and_the_tree_is_whole(before, answer, said, project_folder: Path):
    files = tree(project_folder)
    done = run_by_shell(project_folder, before, answer)
    assert (done.returncode, tree(project_folder)) == (5, files), done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    for record in project_folder.glob("agent-config/logs/*/run.json"):
        assert json.loads(record.read_bytes())["exit_code"] in (5, None)  # a file that is full takes no more words


ODD = {
    "no home": ("unset HOME; exec", "", 0, "The build passes"),
    "no temporary folder": ("TMPDIR=/nowhere exec", "", 0, "The build passes"),
    "no locale": ("LC_ALL=POSIX PYTHONCOERCECLOCALE=0 PYTHONUTF8=0 exec", "", 0, "The build passes"),
    "no path": ("PATH= exec", "", 2, "git is not installed"),
    "no folder": ("mkdir x; cd x; rmdir ../x; exec", "", 2, "current directory cannot be used"),
    "no input": ("exec", "<&-", 0, "The build passes"),
    "no output": ("exec", ">&-", 0, "The build passes"),
    "no streams": ("", "<&- >&- 2>&-", 0, ""),
    "in the background of a script": ("", "& wait $!", 0, "The build passes"),
    "a folder of nobody's": ("echo 'sandbox_caches = [\"~nobodyx/x\"]' >agent-config/config.toml; exec", "", 2, "~nobodyx"),
    "a folder with NUL": ("echo 'sandbox_caches = [\"a\\u0000\"]' >agent-config/config.toml; exec", "", 2, "sandbox_caches"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after", "code", "said"), ODD.values(), ids=ODD)
def test_odd_surroundings(before, after, code, said, project_folder: Path):
    if "sandbox_caches" in before and shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    done = run_by_shell(project_folder, before, after=after)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert (project_folder / "ok.txt").read_text() == ("ok\n" if code == 0 else "not yet\n")


@pytest.fixture(scope="session")
def latin1(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Variables of a locale whose characters are not UTF-8, for a shell."""
    folder = tmp_path_factory.mktemp("locales")
    made = folder / "en_US.ISO-8859-1"
    if shutil.which("localedef"):
        subprocess.run(["localedef", "-i", "en_US", "-f", "ISO-8859-1", made], capture_output=True, check=False)
    if not made.is_dir():
        pytest.skip("localedef cannot make a locale")
    return f"LOCPATH={folder} LC_ALL=en_US.ISO-8859-1 PYTHONUTF8=0"


def in_locale(root: Path, variables: str, *words: str | bytes) -> subprocess.CompletedProcess[bytes]:
    shell = ["sh", "-c", f'{variables} exec "$@"', "sh", *CODE_COMMIT, *words]
    return subprocess.run(shell, cwd=root, capture_output=True, check=False, timeout=180)


ASCII = "LC_ALL=POSIX PYTHONCOERCECLOCALE=0 PYTHONUTF8=0"


@pytest.mark.slow
@pytest.mark.parametrize("locale", ["ascii", "latin1"])
def test_names_are_utf_8_whatever_the_locale_says(locale, project_folder: Path, request: pytest.FixtureRequest):
    variables = ASCII if locale == "ascii" else request.getfixturevalue("latin1")
    (project_folder / "caf\u00e9.txt").write_text("one\n")
    git(project_folder, "add", "-A")
    before = tree(project_folder)
    answer = f"{OK}^^^caf\u00e9.txt\ntwo\n^^^end\n^^^src/\u672c.txt\nnew\n^^^end\n"
    recorded(project_folder, answer)
    words = ("--model", "replay:agent-config/recorded", "-m", "Serve caf\u00e9".encode())
    done = in_locale(project_folder, variables, *words)
    assert done.returncode == 0, done.stderr
    after = {name: file[1] for name, file in tree(project_folder).items() if file != before.get(name)}
    assert after == {"ok.txt": b"ok\n", "caf\u00e9.txt": b"two\n", "src": b"", "src/\u672c.txt": b"new\n"}
    (log,) = project_folder.glob("agent-config/logs/*")
    assert "Serve caf\u00e9\n" in (log / "1-query.txt").read_text("utf-8")
    assert in_locale(project_folder, variables, "undo").returncode == 0
    assert tree(project_folder) == before


@pytest.mark.slow
def test_a_task_in_the_locales_characters_is_sent_as_it_is_read(latin1: str, project_folder: Path):
    recorded(project_folder, OK)
    words = ("--model", "replay:agent-config/recorded", "-m", "Serve caf\u00e9".encode("latin-1"))
    assert in_locale(project_folder, latin1, *words).returncode == 0
    (log,) = project_folder.glob("agent-config/logs/*")
    assert "Serve caf\u00e9\n" in (log / "1-query.txt").read_text("utf-8")


@pytest.mark.slow
def test_a_terminal_shows_names_in_its_own_characters(latin1: str, project_folder: Path):
    (project_folder / "answer").write_text("^^^caf\u00e9 \u672c.txt\nx\n^^^end\n", "utf-8")
    words = ["sh", "-c", f'{latin1} exec "$@"', "sh", *CODE_COMMIT, "apply", "--dry-run", "answer"]
    ours, theirs = pty.openpty()
    done = subprocess.run(words, cwd=project_folder, stdout=theirs, stderr=subprocess.DEVNULL, check=False, timeout=180)
    shown = os.read(ours, 1 << 16)
    os.close(ours)
    os.close(theirs)
    assert (done.returncode, b"caf\xe9 \\u672c.txt" in shown) == (0, True), shown


def test_without_utf_8_names_python_gets_an_error_that_says_what_to_set(project_folder: Path):
    script = "import code_commit.api as api; api.find_project()"
    variables = {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    words = [sys.executable, "-c", script]
    done = subprocess.run(
        words, cwd=project_folder, env=os.environ | variables, capture_output=True, text=True, check=False
    )
    assert "set PYTHONUTF8=1 before Python starts" in done.stderr


def text_of(node: ast.AST) -> str:
    """The text of a string in a module, where what is put into it counts as a group."""
    if isinstance(node, ast.JoinedStr):
        return "".join(map(text_of, node.values))
    value = getattr(node, "value", "")
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return value if isinstance(value, str) else "(?:x)"


def is_possessive(part: object) -> bool:
    if isinstance(part, re._parser.SubPattern | tuple | list):
        return any(map(is_possessive, part))
    return part is re._constants.POSSESSIVE_REPEAT or part is re._constants.ATOMIC_GROUP


def possessive_patterns(source: str) -> Iterator[int]:
    """The lines of a module's patterns that have possessive quantifiers or atomic groups."""
    for node in ast.walk(ast.parse(source)):
        text = text_of(node)
        if re.search(r"[*+?}]\+|\(\?>", text) is None:
            continue
        try:
            with warnings.catch_warnings(action="ignore"):
                pattern = re._parser.parse(text)
        except re.error:
            continue
        if is_possessive(pattern):
            yield node.lineno


@pytest.mark.parametrize("pattern", ['r"a*+"', "rb'(?:a+b){2,}+'", 'rf"(?>{x})"', 'rf"{x}?+"', 'f"a" r"(b|[c]++)"'])
def test_a_possessive_pattern_is_found(pattern):
    assert set(possessive_patterns(f"x = 1\nre.compile(\n{pattern})\n")) == {3}


def test_other_strings_are_no_possessive_patterns():
    source = r"""re.compile(r"[*+]+\++(?:\*+a)+"), "+++ ", "a++ is no pattern: (" """
    assert not list(possessive_patterns(source))


@pytest.mark.slow
def test_no_pattern_needs_what_some_patch_releases_of_python_match_wrongly():
    """Up to 3.11.4 a possessive quantifier fails where its group has to backtrack: `(?:(?!=).*\\n)*+` never matches."""
    for module in Path(code_commit.__file__).parent.rglob("*.py"):
        assert not list(possessive_patterns(module.read_text())), module
