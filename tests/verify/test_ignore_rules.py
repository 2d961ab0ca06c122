"""Rule 4 against git: random rule sets, with git's answer taken from another of its commands; and without git."""

import os
import shutil
import tempfile
import time
from collections import Counter
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
    parents,
    random_ignore_file,
    random_rule_set,
    without_clashes,
)
from telling import tell

from code_commit.changes import FileReplacement, RejectedResponseError
from code_commit.config import Settings
from code_commit.errors import NotSetUpError
from code_commit.project import Project, find_project
from code_commit.redaction import Redactor
from code_commit.verify import capture_rules, gitignore, ignored_paths, verify_changes
from code_commit.verify.ignore_files import IgnoreFiles, find_work_tree, remember_ignore_files
from code_commit.verify.ignored import find_ignored
from code_commit.verify.letter_case import read_otherwise

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
        self.lower = random.random() < 0.3
        self._git_rules(place)
        self.sets = {f"s{number}": self._rule_set() for number in range(BATCH)}
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
        lines = self._ignore_file().removeprefix(b"\xef\xbb\xbf").split(b"\n")
        return b"\n".join(b"s%d/%s" % (self.random.randrange(BATCH), line.lstrip(b"!/")) for line in lines if line)

    def _rule_set(self) -> RuleSet:
        """Without a capital letter in some batches: git is asked once then."""
        rules = random_rule_set(self.random, self.kind)
        if not self.lower:
            return rules
        paths = without_clashes(path.lower() for path in rules.paths)
        folders = {folder for path in paths for folder in parents(path)} | {""}
        ignore_files = {folder.lower(): content.lower() for folder, content in rules.ignore_files.items()}
        return RuleSet({folder: ignore_files[folder] for folder in folders & ignore_files.keys()}, paths)

    def _ignore_file(self) -> bytes:
        content = random_ignore_file(self.random, self.kind)
        return content.lower() if self.lower else content

    def change_rules(self) -> None:
        """Replace every ignore file by another one, as a build between two attempts may do."""
        for name, old in self.sets.items():
            files = {place: self._ignore_file() for place in old.ignore_files}
            lay_out({name: RuleSet(files, old.paths)}, self.root)

    @property
    def paths(self) -> list[str]:
        return [f"{name}/{path}" for name, rules in self.sets.items() for path in rules.paths]

    def by_git(self) -> set[str]:
        inner = self.root.relative_to(self.top).as_posix()
        listed = git_lists_as_ignored(self.top, self.git_dir)
        return {path.removeprefix(inner + "/") if inner != "." else path for path in listed} & set(self.paths)

    def in_another_case_alone(self) -> set[str]:
        """The paths that git ignores without regard to case, but not with it."""
        small = git_lists_as_ignored(self.top, self.git_dir, any_case=False)
        inner = self.root.relative_to(self.top).as_posix()
        return self.by_git() - {path.removeprefix(inner + "/") if inner != "." else path for path in small}

    def rules_of(self, name: str) -> list[bytes]:
        """The contents of all ignore files that say something about the paths of a set."""
        shared = (
            Path(os.environ["HOME"], ".config/git/ignore"),
            self.git_dir / "info/exclude",
            self.top / ".gitignore",
        )
        return [*self.sets[name].ignore_files.values(), *(file.read_bytes() for file in shared if file.exists())]

    def differing_sets(self, paths: set[str]) -> set[str]:
        return {path.partition("/")[0] for path in paths}


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
        memory = remember_ignore_files(project, has_git=True)
        expected = batch.by_git()
        assert find_ignored(batch.paths, project, memory) == expected, kind
        ignored += len(expected)
        if project.git is not None:
            batch.change_rules()
            expected |= batch.by_git()
            assert find_ignored(batch.paths, project, memory) == expected, kind
        checks += len(batch.paths)
        sets += len(batch.sets)
        shutil.rmtree(batch.top)
    assert 0.2 * checks < ignored < 0.8 * checks
    assert sets >= (20_000 if whole else 150)
    tell(capsys, f"ignore rules with git: 0 of {sets} rule sets differ ({checks} paths, {ignored} of them ignored)")


@pytest.mark.slow
def test_without_git_free_is_never_said_where_git_says_ignored(sweep_folder, whole, capsys, monkeypatch):
    checks, sets, refused = Counter(), Counter(), Counter()
    path_variable = os.environ["PATH"]
    for kind, arguments in batches(sweep_folder, 2, whole=whole):
        batch = Batch(*arguments)
        expected = batch.by_git()
        monkeypatch.setenv("PATH", str(sweep_folder / "no programs here"))
        project = find_project(batch.root)
        assert project.git is None
        found = find_ignored(batch.paths, project, remember_ignore_files(project, has_git=False))
        monkeypatch.setenv("PATH", path_variable)
        silent = [(path, batch.sets[path.partition("/")[0]].ignore_files) for path in expected - found]
        assert silent == [], kind
        refused[kind] += len(batch.differing_sets(found - expected))
        sets[kind] += len(batch.sets)
        checks[kind] += len(batch.paths)
        shutil.rmtree(batch.top)
    assert refused["plain"] <= 0.1 * sets["plain"]
    rows = ", ".join(f"{kind}: {refused[kind]} of {sets[kind]} refuse more" for kind in KINDS)
    tell(capsys, f"ignore rules without git: 0 of {sum(sets.values())} sets say free where git says ignored ({rows})")


@pytest.mark.slow
def test_only_paths_that_git_is_asked_for_again_have_two_answers(sweep_folder, whole, capsys):
    """Set by set: in a whole batch the patterns of one set would cover up for those of another."""
    different = again = checks = 0
    for kind, arguments in batches(sweep_folder, 3, whole=whole):
        batch = Batch(*arguments)
        expected = batch.in_another_case_alone()
        for name, rules in batch.sets.items():
            places = {f"{name}/{path}".encode() for path in rules.paths}
            found = {place.decode() for place in read_otherwise(places, batch.rules_of(name))}
            missing = expected.intersection(f"{name}/{path}" for path in rules.paths) - found
            assert not missing, (kind, missing, batch.rules_of(name))
            again += len(found)
            checks += len(places)
        different += len(expected)
        shutil.rmtree(batch.top)
    assert 0 < different < again < checks
    tell(capsys, f"asked again: {again} of {checks} paths, among them all {different} that have two answers")


ONE_ANSWER = [
    (b"*.pyc", "src/A.py"),
    (b"*.py[cod]", "src/A.py"),
    (b"*.py[cod]", "src/a.pyc"),
    (b"[Bb]in/", "src/main/a"),
    (b".DS_Store", "src/a"),
    (b"README.md", "docs/readme.txt"),
    (b"/build", "src/Build.txt"),
    (b"*~", "A"),
    (b"[0_x]", "a"),
]
TWO_ANSWERS = [
    (b"lib", "LIB/a"),
    (b"LIB", "a/lib"),
    (b"!a", "A"),
    (b"[B]in", "bin"),
    (b"[A-Z]", "b"),
    (b"[[:upper:]]", "b"),
    (b"\\Ab", "ab"),
    (b"a/**/B", "a/b"),
    (b"/a/*.X", "a/b.x"),
    (b"**/T", "t"),
    (b"T/**", "t/a/b"),
    (b"?B[c]", "abc"),
    (b"a [Z", "a [z"),
    ("\u00c9A".encode(), "\u00c9a"),
]


@pytest.mark.parametrize(("pattern", "path"), ONE_ANSWER)
def test_git_is_not_asked_again_where_case_makes_no_difference(pattern, path):
    assert not read_otherwise([path.encode()], [pattern])


@pytest.mark.parametrize(("pattern", "path"), TWO_ANSWERS)
def test_git_is_asked_again_where_case_may_make_a_difference(pattern, path):
    assert read_otherwise([path.encode()], [b"*.o\n" + pattern]) == {path.encode()}


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
    ({"": b"LIB/\n"}, "lib/a", True),
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
    memory = remember_ignore_files(project, has_git=True)
    assert (path in find_ignored([path], project, memory)) is expected


@pytest.mark.parametrize(("files", "path", "expected"), DOCUMENTED, ids=lambda value: ascii(value)[:60])
def test_known_differences_are_never_called_free_without_git(tmp_path, monkeypatch, files, path, expected):
    monkeypatch.setenv("PATH", str(tmp_path))
    project = find_project(make_tree(tmp_path, files))
    found = path in find_ignored([path], project, remember_ignore_files(project, has_git=False))
    assert found or not expected
    odd = any(
        not gitignore.is_readable(line.decode("latin-1").strip("!/"))
        for line in b"".join(files.values()).split()
        if line
    )
    assert found is expected or odd


def test_the_rules_of_before_the_run_count_as_well_as_those_of_now(project_folder):
    project = find_project(project_folder)
    (project_folder / "src").mkdir()
    (project_folder / "src/.gitignore").write_bytes(b"*.gen\n")
    git(project_folder, "add", "-A")
    memory = remember_ignore_files(project, has_git=True)
    (project_folder / ".gitignore").write_bytes(b"/new\n")
    (project_folder / "src/.gitignore").unlink()
    paths = ["target/x", "new/x", "src/a.gen", "free.txt"]
    assert find_ignored(paths, project, memory) == {"target/x", "new/x", "src/a.gen"}


def test_a_changed_excludes_file_is_asked_as_it_was_and_as_it_is(project_folder, tmp_path):
    (tmp_path / "mine").write_bytes(b"*.mine\n")
    git(project_folder, "config", "core.excludesFile", str(tmp_path / "mine"))
    (project_folder / ".git/info/exclude").write_bytes(b"*.info\n")
    project = find_project(project_folder)
    memory = remember_ignore_files(project, has_git=True)
    (tmp_path / "other").write_bytes(b"*.other\n")
    git(project_folder, "config", "core.excludesFile", str(tmp_path / "other"))
    (project_folder / ".git/info/exclude").unlink()
    paths = ["a.mine", "a.other", "a.info", "a.txt"]
    assert find_ignored(paths, project, memory) == {"a.mine", "a.other", "a.info"}


def test_what_is_met_first_in_a_later_attempt_is_remembered_from_then_on(project_folder):
    project = find_project(project_folder)
    memory = remember_ignore_files(project, has_git=True)
    (project_folder / "gen").mkdir()
    (project_folder / "gen/.gitignore").write_bytes(b"*.o\n")
    assert find_ignored(["gen/a.o", "gen/a.c"], project, memory) == {"gen/a.o"}
    (project_folder / "gen/.gitignore").unlink()
    assert find_ignored(["gen/a.o", "gen/a.c"], project, memory) == {"gen/a.o"}


@pytest.mark.parametrize("with_git", [True, False])
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
def test_ignored_paths_tells_whether_agent_config_is_really_ignored(
    project_folder, monkeypatch, rules, ignored, with_git
):
    (project_folder / ".gitignore").write_bytes(rules)
    if not with_git:
        monkeypatch.setenv("PATH", str(project_folder / "nothing"))
    project = find_project(project_folder)
    assert ignored_paths(project, ["agent-config", "src/x"]) >= ({"agent-config"} if ignored else set())
    assert ("agent-config" in ignored_paths(project, ["agent-config"])) is ignored
    assert ignored_paths(project, []) == frozenset()


def test_a_configuration_that_git_cannot_read_rejects_the_whole_response(project_folder):
    project = find_project(project_folder)
    rules = capture_rules(project, Settings(), None, Redactor([]))
    (project_folder / ".git/config").write_text("[broken")
    with pytest.raises(RejectedResponseError, match=r"git check-ignore failed: .*bad config") as caught:
        verify_changes([FileReplacement("ok.txt", "ok\n", 1)], project, rules)
    assert {(violation.path, violation.rule) for violation in caught.value.violations} == {
        ("", "ignored"),
        ("", "hidden"),
    }


@pytest.mark.parametrize("place", [".gitignore", "src/.gitignore", ".git/info/exclude"])
def test_a_fifo_in_the_place_of_an_ignore_file_is_told_at_once(project_folder, place):
    project = find_project(project_folder)
    rules = capture_rules(project, Settings(), None, Redactor([]))
    (project_folder / place).unlink(missing_ok=True)
    (project_folder / "src").mkdir(exist_ok=True)
    os.mkfifo(project_folder / place)
    with pytest.raises(NotSetUpError, match="no regular file"):
        ignored_paths(project, ["src/a"])
    with pytest.raises(RejectedResponseError, match="no regular file") as caught:
        verify_changes([FileReplacement("src/a", "x\n", 1)], project, rules)
    assert str(caught.value).isprintable()


def test_ten_thousand_paths_cost_as_many_calls_of_git_as_one(project_folder, tmp_path, monkeypatch):
    calls, programs = tmp_path / "calls", tmp_path / "programs"
    programs.mkdir()
    (programs / "git").write_text(f'#!/bin/sh\necho "$*" >> {calls}\nexec {shutil.which("git")} "$@"\n')
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    project = find_project(project_folder)
    rules = capture_rules(project, Settings(), None, Redactor([]))
    counts = []
    for count in (1, 10_000):
        calls.write_text("")
        changes = [FileReplacement(f"f{number}/x.py", "", number) for number in range(count)]
        verify_changes(changes, project, rules)
        counts.append(len(calls.read_text().splitlines()))
    assert counts == [3, 3], calls.read_text()


def test_the_environment_of_git_does_not_bend_the_answer(project_folder, monkeypatch, tmp_path):
    git(tmp_path, "init", "-q", "elsewhere")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere/.git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_ICASE_PATHSPECS", "1")
    project = find_project(project_folder)
    assert ignored_paths(project, ["target/x", "src/x", ":(top)target", "*"]) == {"target/x"}


def test_ten_thousand_paths_without_git_take_a_moment():
    patterns = "".join(f"*.x{number}\n/q{number}/\nfoo{number}/**/bar\n" for number in range(100)).encode()
    files = IgnoreFiles({b"": patterns})
    paths = [f"d{number % 200}/e{number % 17}/f{number}.py".encode() for number in range(10_000)]
    start = time.process_time()
    assert gitignore.find_ignored(paths, files, any_case=True) == set()
    assert time.process_time() - start < 10


def test_a_work_tree_without_git_is_the_nearest_folder_with_a_git_entry(tmp_path):
    (tmp_path / ".git").mkdir()
    inner = tmp_path / "a/b"
    inner.mkdir(parents=True)
    assert find_work_tree(Project(inner), has_git=False).prefix == b"a/b"
    assert find_work_tree(Project(inner), has_git=True).prefix == b""
