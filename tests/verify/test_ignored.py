"""What git ignores, against another of its commands, over random rule sets; and patterns of options against git."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from command import git
from rule_sets import (
    KINDS,
    RuleSet,
    git_lists_as_ignored,
    lay_out,
    random_ignore_file,
    random_rule_set,
)
from telling import tell

from code_commit.changes import FileReplacement, RejectedResponseError
from code_commit.errors import NotSetUpError
from code_commit.project import find_project
from code_commit.redaction import Redactor
from code_commit.settings import Settings
from code_commit.verify import capture_rules, ignored_paths, verify_changes
from code_commit.verify.ignored import find_ignored, remember_ignore_files

BATCH = 40
PLACES = ("root of a repository", "folder of a repository", "no repository")


class Batch:
    """A folder with many rule sets, each in a folder of its own, and the two answers about them."""

    def __init__(self, folder: Path, random: Random, kind: str, place: str) -> None:
        self.random, self.kind = random, kind
        self.top = folder / "top"
        self.root = self.top / "inner" if place == PLACES[1] else self.top
        self.root.mkdir(parents=True)
        self.git_dir = self.top / ".git" if place != PLACES[2] else folder / "oracle.git"
        git(self.top, f"--git-dir={self.git_dir}", "--work-tree=.", "init", "-q")
        self._git_rules(place)
        self.sets = {f"s{number}": random_rule_set(random, kind) for number in range(BATCH)}
        lay_out(self.sets, self.root)
        if place != PLACES[2]:
            git(self.top, "add", "-f", ":(glob)**/.gitignore")

    def _git_rules(self, place: str) -> None:
        """Give some batches rules of the repository and of the user: names that do not ignore whole sets."""
        if self.random.random() < 0.4:
            excludes = Path(os.environ["HOME"], ".config/git/ignore")
            excludes.parent.mkdir(parents=True, exist_ok=True)
            excludes.write_bytes(self._tame_rules())
        if self.random.random() < 0.4 and place != PLACES[2]:
            (self.git_dir / "info/exclude").write_bytes(self._tame_rules())
        if place == PLACES[1]:
            (self.top / ".gitignore").write_bytes(self._tame_rules())

    def _tame_rules(self) -> bytes:
        lines = random_ignore_file(self.random, self.kind).removeprefix(b"\xef\xbb\xbf").split(b"\n")
        return b"\n".join(b"s%d/%s" % (self.random.randrange(BATCH), line.lstrip(b"!/")) for line in lines if line)

    def change_rules(self) -> None:
        """Replace every ignore file by another one, as a build between two attempts may do."""
        for name, old in self.sets.items():
            files = {place: random_ignore_file(self.random, self.kind) for place in old.ignore_files}
            lay_out({name: RuleSet(files, old.paths)}, self.root)

    @property
    def paths(self) -> list[str]:
        return [f"{name}/{path}" for name, rules in self.sets.items() for path in rules.paths]

    def by_git(self) -> set[str]:
        inner = self.root.relative_to(self.top).as_posix()
        listed = git_lists_as_ignored(self.top, self.git_dir)
        return {path.removeprefix(inner + "/") if inner != "." else path for path in listed} & set(self.paths)


@pytest.fixture
def sweep_folder() -> Iterator[Path]:
    """A sweep makes and removes many small files: in memory where there is such a file system."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder).resolve()


def batches(tmp_path: Path, seed: int, *, whole: bool) -> list[tuple[str, Batch]]:
    count = 170 if whole else 2
    return [
        (
            kind,
            (
                tmp_path / f"{kind}{number}",
                Random(f"{seed} {kind} {number}"),
                kind,
                PLACES[(number + turn) % len(PLACES)],
            ),
        )
        for turn, kind in enumerate(KINDS)
        for number in range(count)
    ]


@pytest.mark.slow
def test_our_answer_is_gits_own_in_every_rule_set(sweep_folder, whole, capsys):
    checks, sets, ignored = 0, 0, 0
    for kind, arguments in batches(sweep_folder, 1, whole=whole):
        batch = Batch(*arguments)
        project = find_project(batch.root)
        before = remember_ignore_files(project)
        expected = batch.by_git()
        assert find_ignored(batch.paths, project, before) == expected, kind
        ignored += len(expected)
        if project.git is not None:
            batch.change_rules()
            expected |= batch.by_git()
            assert find_ignored(batch.paths, project, before) == expected, kind
        checks += len(batch.paths)
        sets += len(batch.sets)
        shutil.rmtree(batch.top)
    assert 0.2 * checks < ignored < 0.8 * checks
    assert sets >= (20_000 if whole else 150)
    tell(capsys, f"ignore rules with git: 0 of {sets} rule sets differ ({checks} paths, {ignored} of them ignored)")


DOCUMENTED = [
    # .gitignore files, path, what git says: the classes in which libraries are known to differ
    ({"": b"b\n!b/a\n"}, "b/a", True),
    ({"": b"*\n!c\n"}, "ab/c", True),
    ({"": b"!*\nb\n"}, "b/x", True),
    ({"": b"lib\n!/\n"}, "lib/a", True),
    ({"": b"b/**/\n"}, "b/c", False),
    ({"": b"*/c/b\n", "build": b"!c\n"}, "build/c/b", True),
    ({"sub": b"x\n"}, "sub/x", True),
    ({"": b"[[:alpha:]]\n"}, "b", True),
    ({"": b"?\n"}, "\u00e9", False),
    ({"": b"??\n"}, "\u00e9", True),
    ({"": b"\xef\xbb\xbf*\n"}, "b", True),
    ({"": b"a\t\n"}, "a", False),
    ({"": b"[a/]?\n"}, "ab", True),
    ({"": b"[\\-z]\n"}, "b", False),
    ({"": b"***/abc\n"}, "abc", True),
    ({"": b"\\\n"}, "a", False),
    ({"": b"!\n"}, "a", False),
    ({"": b"[z-a]\n"}, "b", False),
    ({"": b"d/\n!d/keep\n"}, "d/keep", True),
    ({"": b"/agent-config\r\n"}, "agent-config/x", True),
    ({"": b"*\n!*/\n!*.c\n"}, "src/a.c", False),
    ({"": b"*\n!*/\n!*.c\n"}, "src/a.o", True),
    ({"": b"\\#*\\#\n"}, "#a#", True),
    ({"": b"*.py[cod]\n"}, "a.pyc", True),
    ({"": b"*.py[cod]\n"}, "a.py", False),
    ({"": b"!.env.example\n.env*\n"}, ".env.example", True),
    ({"": b".env*\n!.env.example\n"}, ".env.example", False),
    ({"": b"a\0b\n"}, "a", True),
    ({"": b"a  \n"}, "a", True),
    ({"": b"a\\ \n"}, "a ", True),
    ({"": b"LIB/\n"}, "lib/a", False),
    ({"": b"\xc3\xa0\n"}, "\u00e0", True),
    ({"": b"/*\n!/src\n"}, "src/a", False),
    ({"": b"/*\n!/src\n"}, "doc/a", True),
    ({"": b"src/**\n!src/**/\n!src/**/*.rs\n"}, "src/x/a.rs", False),
]


def make_tree(folder: Path, files: dict[str, bytes]) -> Path:
    for place, content in files.items():
        (folder / place).mkdir(parents=True, exist_ok=True)
        (folder / place / ".gitignore").write_bytes(content)
    return folder


@pytest.mark.parametrize(("files", "path", "expected"), DOCUMENTED, ids=lambda value: ascii(value)[:60])
def test_known_differences_are_answered_as_git_does(tmp_path, files, path, expected):
    project = find_project(make_tree(tmp_path, files))
    before = remember_ignore_files(project)
    assert (path in find_ignored([path], project, before)) is expected


def test_the_rules_of_before_the_run_count_as_well_as_those_of_now(project_folder):
    project = find_project(project_folder)
    (project_folder / "src").mkdir()
    (project_folder / "src/.gitignore").write_bytes(b"*.gen\n")
    git(project_folder, "add", "-A")
    before = remember_ignore_files(project)
    (project_folder / ".gitignore").write_bytes(b"/new\n")
    (project_folder / "src/.gitignore").unlink()
    paths = ["target/x", "new/x", "src/a.gen", "free.txt"]
    assert find_ignored(paths, project, before) == {"target/x", "new/x", "src/a.gen"}


def test_what_is_met_first_in_a_later_attempt_is_remembered_from_then_on(project_folder):
    project = find_project(project_folder)
    before = remember_ignore_files(project)
    (project_folder / "gen").mkdir()
    (project_folder / "gen/.gitignore").write_bytes(b"*.o\n")
    assert find_ignored(["gen/a.o", "gen/a.c"], project, before) == {"gen/a.o"}
    (project_folder / "gen/.gitignore").unlink()
    assert find_ignored(["gen/a.o", "gen/a.c"], project, before) == {"gen/a.o"}


@pytest.mark.parametrize(
    ("rules", "ignored"),
    [
        (b"/agent-config\n", True),
        (b"/agent-config/\n", True),
        (b"agent-config\n!/agent-config\n", False),
        (b"/Agent-Config\n", False),
        (b"", False),
        (b"*\n", True),
        (b"\xef\xbb\xbf/agent-config\n", True),
        (b"/agent-config/*\n", False),
    ],
)
def test_ignored_paths_tells_whether_agent_config_is_really_ignored(project_folder, rules, ignored):
    (project_folder / ".gitignore").write_bytes(rules)
    project = find_project(project_folder)
    assert ignored_paths(project, ["agent-config", "src/x"]) >= ({"agent-config"} if ignored else set())
    assert ("agent-config" in ignored_paths(project, ["agent-config"])) is ignored
    assert ignored_paths(project, []) == frozenset()


def test_a_configuration_that_git_cannot_read_rejects_the_whole_response(project_folder):
    project = find_project(project_folder)
    rules = capture_rules(project, Settings(), Redactor([]))
    (project_folder / ".git/config").write_text("[broken")
    with pytest.raises(RejectedResponseError, match=r"git check-ignore failed: .*bad config") as caught:
        verify_changes([FileReplacement("ok.txt", "ok\n", 1)], project, rules, None)
    assert [(violation.path, violation.rule) for violation in caught.value.violations] == [("", "ignored")]


@pytest.mark.parametrize("place", [".gitignore", "src/.gitignore"])
def test_a_fifo_in_the_place_of_an_ignore_file_is_told_at_once(project_folder, place):
    project = find_project(project_folder)
    rules = capture_rules(project, Settings(), Redactor([]))
    (project_folder / place).unlink(missing_ok=True)
    (project_folder / "src").mkdir(exist_ok=True)
    os.mkfifo(project_folder / place)
    with pytest.raises(NotSetUpError, match="not a regular file"):
        ignored_paths(project, ["src/a"])
    with pytest.raises(RejectedResponseError, match="not a regular file") as caught:
        verify_changes([FileReplacement("src/a", "x\n", 1)], project, rules, None)
    assert str(caught.value).isprintable()


def test_three_hundred_paths_cost_as_many_calls_of_git_as_one(project_folder, tmp_path, monkeypatch):
    calls, programs = tmp_path / "calls", tmp_path / "programs"
    programs.mkdir()
    (programs / "git").write_text(f'#!/bin/sh\necho "$*" >> {calls}\nexec {shutil.which("git")} "$@"\n')
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    project = find_project(project_folder)
    rules = capture_rules(project, Settings(), Redactor([]))
    counts = []
    for count in (1, 300):
        calls.write_text("")
        changes = [FileReplacement(f"f{number}/x.py", "", number) for number in range(count)]
        verify_changes(changes, project, rules, None)
        counts.append(len(calls.read_text().splitlines()))
    assert counts == [1, 1], calls.read_text()


def test_the_index_is_read_again_when_it_has_changed(project_folder):
    (project_folder / "ok.txt").write_text("ok\n")
    project = find_project(project_folder)
    before = project.index()
    assert project.index() is before
    git(project_folder, "add", "ok.txt")
    assert "ok.txt" in project.index().files
    git(project_folder, "update-index", "--skip-worktree", "ok.txt")
    assert project.index().hidden == {"ok.txt"}
    git(project_folder, "update-index", "--no-skip-worktree", "--assume-unchanged", "ok.txt")
    assert project.index().hidden == {"ok.txt"}
    git(project_folder, "update-index", "--force-remove", "ok.txt")
    assert "ok.txt" not in project.index().files


def test_the_environment_of_git_does_not_bend_the_answer(project_folder, monkeypatch, tmp_path):
    git(tmp_path, "init", "-q", "elsewhere")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere/.git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_ICASE_PATHSPECS", "1")
    project = find_project(project_folder)
    assert ignored_paths(project, ["target/x", "src/x", ":(top)target", "*"]) == {"target/x"}


def test_a_pattern_that_cannot_be_read_is_told_before_the_run(project_folder):
    project = find_project(project_folder)
    for option in ("allow", "protect"):
        with pytest.raises(NotSetUpError, match="pattern"):
            capture_rules(project, Settings(**{option: ("src/[z-a]",)}), Redactor([]))
