"""Tasks made of a repository's own commits, and the answers of those commits given to them."""

import contextlib
import json
import os
import shutil
import signal
from collections import Counter
from pathlib import Path

import pytest
from command import git, wait_for
from fleet_tools import RIGHT, make_answers, make_list, make_repository, results

from code_commit.commands.results import Result
from code_commit.errors import NotSetUpError
from code_commit.fleet.history import EnoughError, Sieve, read_history, tasks_of
from code_commit.fleet.results import TaskOutcome
from code_commit.fleet.table import FleetTable

BUILD = "set -e; for test in tests/*.sh; do sh $test; done"
COMMITS = {
    "Add one": {"one.txt": "1\n", "tests/one.sh": "grep -q 1 one.txt\n"},
    "Code alone": {"other.txt": "x\n"},
    "Tests alone": {"tests/one.sh": "grep -q 1 one.txt  # again\n"},
    "Tested before": {"other.txt": "y\n", "tests/x.sh": "grep -q 1 one.txt\n"},
    "Broken": {"other.txt": "z\n", "tests/x.sh": "exit 1\n"},
    "Mend it\n\nAnd say more.": {"two.txt": "2\n", "tests/x.sh": None, "tests/two.sh": "#!/bin/sh\ngrep 2 two.txt\n"},
    "Other build": {"build.sh": f"#!/bin/sh\n{BUILD}; true\n", "tests/z.sh": "true\n"},
    "Picture": {"a.png": b"\x89\0", "tests/z.sh": "true #\n"},
}
UNFIT = {
    "2 (no test changed)",
    "1 (only tests changed)",
    "1 (a protected file changed)",
    "1 (a file that is not text changed)",
}


@pytest.fixture(scope="module")
def history_of_all(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_repository(tmp_path_factory.mktemp("history") / "repository", BUILD)
    git(root, "rm", "-q", ".gitignore")
    git(root, "commit", "-qm", "bare")
    for message, files in COMMITS.items():
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(exist_ok=True)
            if text is None:
                path.unlink()
            else:
                path.write_bytes(text if isinstance(text, bytes) else text.encode())
        git(root, "add", "-A")
        git(root, "commit", "-qm", message)
    git(root, "checkout", "-q", "-b", "side", "HEAD^")
    git(root, "merge", "-q", "--no-ff", "-m", "a merge", "main")
    return root


@pytest.fixture
def root(tmp_path: Path, history_of_all: Path) -> Path:
    return shutil.copytree(history_of_all, tmp_path / "repository", symlinks=True)


def history(cluster, root: Path, *words: str) -> tuple[list[dict], list[str]]:
    """Return the lines that are printed, and those that are told."""
    done = cluster.run_fleet(root, "--from-history", str(root), "--tests", "tests/**", *words, listed=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr.splitlines()


def parts(told: str) -> set[str]:
    return set(told.replace("; left out: ", ", ").split(", "))


def test_commits_with_tests_and_other_files_become_tasks(cluster, root):
    (defaults, *tasks), told = history(cluster, root)
    titles = [task["query"].split("\n")[0] for task in tasks]
    assert titles == ["Mend it", "Broken", "Tested before", "Add one"]
    assert parts(told[0]) == {"9 commits: 4 tasks", *UNFIT}
    mend = tasks[0]
    assert mend["query"] == "Mend it\n\nAnd say more."
    assert mend["overlay"] == {"tests/two.sh": "#!/bin/sh\ngrep 2 two.txt\n", "tests/x.sh": None}
    assert git(root, "log", "-1", "--format=%P", mend["id"]).strip() == mend["commit"]
    assert defaults["defaults"] == {
        "repository": str(root),
        "setup": True,
        "sealed": True,
        "settings": {"protect": ["tests/**"]},
    }
    (defaults, task), told = history(cluster, root, "--hidden", "--limit", "1", "--commits", "main~2")
    assert (task["verify"], "settings" in defaults["defaults"]) == (mend["overlay"], False)


@pytest.mark.sweep
@pytest.mark.parametrize("hidden", [False, True])
def test_those_are_kept_that_tests_tell_apart_and_their_own_commits_solve_them(cluster, root, tmp_path, whole, hidden):
    """The answer of the commit is the right one, that of another one is not; an empty one solves nothing."""
    (tmp_path / "build").write_text(f"test ! -d tests || {{ {BUILD}; }}")
    words = ("--validate", "--build-instead", str(tmp_path / "build"), *(["--hidden"] if hidden else []))
    (defaults, *tasks), told = history(cluster, root, *words)
    titles = ["Mend it", "Add one"]
    unfit = {
        "9 commits: 2 tasks",
        "1 (its tests fail with the change)",
        "1 (its tests pass without the change)",
        *UNFIT,
    }
    if hidden:  # it mended a test that a run would have to pass
        titles.remove("Mend it")
        unfit ^= {"9 commits: 2 tasks", "9 commits: 1 task"}
        unfit |= {"1 (the earlier tests", "which a run sees", "fail with the change)"}
    tasks.sort(key=lambda task: titles.index(task["query"].split("\n")[0]))  # they are printed as they are found
    assert [task["query"].split("\n")[0] for task in tasks] == titles
    assert parts(told[-1]) == unfit
    assert "unfit" in "\n".join(told)

    answers = {
        "Mend it": "^^^two.txt\n2\n^^^end\n",
        "Add one": "^^^one.txt\n1\n^^^end\n",
        "wrong": RIGHT,
        "empty": "Nothing to do.",
    }
    models = {name: make_answers(tmp_path / name.replace(" ", "-"), answer) for name, answer in answers.items()}
    lines = [
        {**task, "id": f"{title}-{kind}".replace(" ", "-"), "settings": {"model": models[name], "max_repairs": 0}}
        for task, title in zip(tasks, titles, strict=True)
        for kind, name in (("right", title), ("wrong", "wrong"), ("empty", "empty"))
        if whole or kind == "right" or (title == titles[-1] and (hidden or kind == "wrong"))
    ]
    cluster.run_fleet(make_list(tmp_path / "tasks.jsonl", defaults, *lines))
    ends = {"right": ("success", None), "wrong": ("build_failed", None), "empty": ("rejected", None)}
    if hidden:
        ends |= {"right": ("success", True), "wrong": ("not_verified", False)}
    found = {name: (line["status"], line["verified"]) for name, line in results(tmp_path).items()}
    assert found == {line["id"]: ends[line["id"].rpartition("-")[2]] for line in lines}


@pytest.mark.sweep
def test_what_was_found_fit_is_printed_also_where_the_rest_is_interrupted(cluster, root, tmp_path):
    (tmp_path / "build").write_text(f"! grep -qx x other.txt || sleep 600; test ! -d tests || {{ {BUILD}; }}")
    words = ("--tests", "tests/**", "--validate", "--build-instead", str(tmp_path / "build"))
    with cluster.start_fleet(root, "--from-history", str(root), *words, listed=False) as fleet:
        wait_for(lambda: fleet.printed().count("\n") == 3)
        fleet.send_signal(signal.SIGTERM)
        output, _ = fleet.communicate(timeout=300)
    _, *tasks = map(json.loads, output.splitlines())
    assert sorted(task["query"].split("\n")[0] for task in tasks) == ["Add one", "Mend it"]


def test_no_program_of_git_s_configuration_runs_as_a_history_is_read(cluster, root, tmp_path):
    (tmp_path / "gpg").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\nexit 1\n")
    (tmp_path / "gpg").chmod(0o755)
    signed = git(root, "cat-file", "commit", "main~2").replace("\n\n", "\ngpgsig -----BEGIN PGP SIGNATURE-----\n\n", 1)
    (tmp_path / "commit").write_text(signed)
    commit = git(root, "hash-object", "-t", "commit", "-w", "--literally", str(tmp_path / "commit")).strip()
    git(root, "config", "log.showSignature", "true")
    git(root, "config", "gpg.program", str(tmp_path / "gpg"))
    git(root, "log", "-1", commit)
    assert (tmp_path / "ran").exists()
    (tmp_path / "ran").unlink()
    history(cluster, root, "--commits", f"{commit}~..{commit}")
    assert not (tmp_path / "ran").exists()


def test_a_commit_of_many_files_takes_few_calls_of_git(root, tmp_path, monkeypatch):
    calls, real = tmp_path / "calls", shutil.which("git")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text(f'#!/bin/sh\necho "$*" >>{calls}\nexec {real} "$@"\n')
    (tmp_path / "bin" / "git").chmod(0o755)
    for number in range(50):
        (root / f"{number}.txt").write_text(f"{number}\n")
        (root / "tests" / f"{number}.sh").write_text("true\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Many")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    ((line, _),) = tasks_of(root, read_history(root, "HEAD~..HEAD"), ["tests/**"], "overlay", Counter())
    assert len(line["overlay"]) == 50
    assert len(calls.read_text().splitlines()) < 10


def test_a_test_whose_name_is_not_utf_8_makes_no_task(root):
    unfit = Counter()
    (root / "a.txt").write_text("a\n")
    (root / os.fsdecode(b"tests/\xff.sh")).write_text("true\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Latin")
    assert list(tasks_of(root, read_history(root, "HEAD~..HEAD"), ["tests/**"], "overlay", unfit)) == []
    assert unfit == {"the name of a test is not UTF-8": 1}


def test_a_history_that_cannot_be_read_is_told(root, tmp_path):
    with pytest.raises(NotSetUpError, match="is not a folder: clone the repository first"):
        read_history(Path("https://example.org/x"), "HEAD")
    with pytest.raises(NotSetUpError, match="unknown revision"):
        read_history(root, "nowhere..HEAD")


@pytest.mark.parametrize(
    ("kinds", "printed", "hopeless"),
    [
        (["late"] * 5 + ["fit"], "", "late: | no tests ran"),
        (["late", "soon"] * 4 + ["fit"], "8\n", ""),
        (["fit"] + ["late"] * 9, "0\n", ""),
        (["fit"] * 3, "0\n1\n", ""),
    ],
    ids=["five for one reason", "for two reasons", "one fits", "enough"],
)
def test_a_validation_ends_when_it_has_enough_or_no_hope(capsys, kinds, printed, hopeless):
    unfit, lines = Counter(), {str(number): str(number) for number in range(len(kinds))}
    sieve = Sieve(FleetTable(len(kinds), quiet=True), lines, 2, unfit, 5)
    given = 0
    with contextlib.suppress(EnoughError):
        for name, kind in zip(lines, kinds, strict=True):
            failed = {"status": "unfit", "exit_code": 1, "message": f"{kind}: | no tests ran", "error": kind}
            end = {"status": "success", "exit_code": 0} if kind == "fit" else failed
            given += 1
            sieve.take(None, TaskOutcome(Result(name, "d", **end)))
    assert (capsys.readouterr().out, sieve.hopeless) == (printed, hopeless)
    assert given == {"late: | no tests ran": 5}.get(hopeless, 2 if printed == "0\n1\n" else len(kinds))
