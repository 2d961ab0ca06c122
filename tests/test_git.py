"""Questions to git: whose answer counts, and what happens without one."""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

import pytest
from command import Run, by_count, by_parameters, every_third, git, recorded, the_log
from telling import tell

from code_commit.git import git_environment, match_patterns
from code_commit.project import find_project
from code_commit.verify import ignored_paths

PASSES, FAILS = "^^^ok.txt\nok\n^^^end\n", "^^^ok.txt\nno\n^^^end\n"


REAL_PATH = os.environ["PATH"]


def test_a_filter_that_only_the_project_has_is_no_trouble(project_folder: Path, run_code_commit: Run):
    (project_folder / "bin").mkdir()
    (project_folder / "bin" / "strip").write_text("#!/bin/sh\ntr a-z A-Z\n")
    (project_folder / "bin" / "strip").chmod(0o755)
    (project_folder / ".gitattributes").write_text("*.txt filter=upper\n")
    git(project_folder, "config", "filter.upper.clean", f"{project_folder}/bin/strip")
    git(project_folder, "add", "-A")
    git(project_folder, "commit", "-qm", "filter")
    git(project_folder, "config", "filter.upper.clean", "strip")
    git(project_folder, "config", "filter.upper.required", "true")
    os.utime(project_folder / "ok.txt", (1, 1))
    options = [*recorded(project_folder, PASSES), "--sandbox", "off"]
    done = run_code_commit(project_folder, *options, env={"PATH": f"{project_folder}/bin:{REAL_PATH}"})
    assert (done.returncode, "failed" in done.stderr) == (0, False), done.stderr


ORDINARY_PIECES = ("src", "a", "b", "*.py", "*", "test_*", "?", "lib?", "README.md", "gen", "**")


def ordinary_patterns(random: Random) -> list[str]:
    """Return patterns as people write them for --allow and --protect: names and asterisks, slashes at the ends."""
    patterns = []
    for _ in range(random.randint(1, 4)):
        pieces = [random.choice(ORDINARY_PIECES) for _ in range(random.choice((1, 1, 2, 2, 3)))]
        pattern = random.choice(("", "", "/")) + "/".join(pieces) + random.choice(("", "", "/"))
        if "**/**" not in pattern and not pattern.endswith("**/") and pattern.strip("/*"):
            patterns.append(pattern)
    return patterns


def test_ordinary_patterns_of_options_match_what_git_would_ignore(tmp_path, whole, capsys):
    random = Random("ordinary patterns")
    names = ("src", "a", "b", "a.py", "test_b", "libx", "README.md", "gen", "x.txt")
    paths = sorted({"/".join(random.choice(names) for _ in range(random.randint(1, 4))) for _ in range(60)})
    git(tmp_path, "init", "-q")
    project = find_project(tmp_path)
    sets = 2000 if whole else 60
    for _ in range(sets):
        patterns = ordinary_patterns(random)
        (tmp_path / ".gitignore").write_text("".join(pattern + "\n" for pattern in patterns))
        assert match_patterns(patterns, paths) == ignored_paths(project, paths), patterns
    tell(capsys, f"patterns of options: 0 of {sets} lists differ from git ({len(paths)} paths)")


def by_file(place: str, folder: Path, values: Mapping[str, str]) -> dict[str, str]:
    """Write the values into a file of git's configuration, and return the variable that names it."""
    for name, value in values.items():
        git(folder, "config", "--file", f"{folder}/{place}.config", name, value)
    return {place: f"{folder}/{place}.config"}


def in_folder(variable: str, folder: Path, file: str, text: str) -> dict[str, str]:
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(text)
    return {variable: str(folder)}


def excludes_of(folder: Path) -> dict[str, str]:
    (folder / "rules").write_text("*.mine\n")
    return {"core.excludesFile": f"{folder}/rules"}


def in_the_project(root: Path, _: Path) -> dict[str, str]:
    (root / "my rules").write_text("*.mine\n/my rules\n")
    return by_count({"core.excludesFile": "my rules"})


def of_the_repository(root: Path, _: Path) -> dict[str, str]:
    file = Path(git(root, "rev-parse", "--path-format=absolute", "--git-path", "info/exclude").strip())
    file.parent.mkdir(exist_ok=True)
    file.write_text("*.mine\n")
    return {}


WAYS: dict[str, Callable[[Path, Path], dict[str, str]]] = {
    "GIT_CONFIG_GLOBAL": lambda _, folder: by_file("GIT_CONFIG_GLOBAL", folder, excludes_of(folder)),
    "GIT_CONFIG_SYSTEM": lambda _, folder: by_file("GIT_CONFIG_SYSTEM", folder, excludes_of(folder)),
    "GIT_CONFIG_COUNT": lambda _, folder: by_count(excludes_of(folder)),
    "GIT_CONFIG_PARAMETERS": lambda _, folder: by_parameters(excludes_of(folder)),
    "an included file": lambda _, folder: by_count(
        {"include.path": by_file("included", folder, excludes_of(folder))["included"]}
    ),
    "the last of two": lambda _, folder: by_count({"core.excludesFile": "no"}) | by_parameters(excludes_of(folder)),
    "letter case": lambda _, folder: by_count({"core.ignoreCase": "true", **excludes_of(folder)}),
    "XDG_CONFIG_HOME": lambda _, folder: in_folder("XDG_CONFIG_HOME", folder, "git/ignore", "*.mine\n"),
    "HOME": lambda _, folder: (
        excludes_of(folder) and in_folder("HOME", folder, ".gitconfig", "[core]\nexcludesFile = ~/rules\n")
    ),
    "a relative path": in_the_project,
    "info/exclude": of_the_repository,
}
"""How a user lets git ignore *.mine: what each way writes, and the variables that it takes."""


@pytest.fixture(params=["the main work tree", "a linked one"])
def work_tree(request, project_folder: Path, tmp_path: Path) -> Path:
    if request.param == "the main work tree":
        return project_folder
    git(project_folder, "worktree", "add", "-q", str(tmp_path / "linked"))
    return tmp_path / "linked"


@pytest.mark.parametrize("way", WAYS)
def test_what_the_user_s_git_ignores_is_ignored(way, work_tree: Path, tmp_path: Path, monkeypatch):
    for name, value in WAYS[way](work_tree, tmp_path).items():
        monkeypatch.setenv(name, value)
    paths = ["a.mine", "src/b.mine", "C.MINE", "a.min", "my rules", "target/x", "src/x"]
    words = ["git", "check-ignore", "--no-index", *paths]
    theirs = subprocess.run(words, cwd=work_tree, capture_output=True, text=True, check=False).stdout.splitlines()
    assert {"a.mine", "src/b.mine"} <= set(theirs)
    assert ignored_paths(find_project(work_tree), paths) == {name.strip('"') for name in theirs}


@pytest.mark.parametrize("way", every_third({name: name for name in WAYS}))
def test_what_the_user_s_git_ignores_is_not_sent_and_not_changed(
    way, project_folder: Path, tmp_path: Path, run_code_commit: Run
):
    """The build has the configuration too: it fails where git does not ignore the file."""
    (project_folder / "build.sh").write_text("#!/bin/sh\ngit check-ignore -q notes.mine && grep -q '^ok$' ok.txt\n")
    git(project_folder, "commit", "-qam", "a build that asks git")
    (project_folder / "notes.mine").write_text("mine alone\n")
    variables = WAYS[way](project_folder, tmp_path)
    options = [*recorded(project_folder, "^^^notes.mine\nyours\n^^^end\n", PASSES), "--sandbox", "off"]
    done = run_code_commit(project_folder, *options, "--rollup", "fresh", env=variables)
    assert (done.returncode, "notes.mine: git ignores it" in done.stderr) == (0, True), done.stderr
    assert (project_folder / "notes.mine").read_text() == "mine alone\n"
    sent = "".join(path.read_text() for path in the_log(project_folder).glob("*-query.txt"))
    assert "ok.txt" in sent
    assert "mine alone" not in sent


def test_what_would_lead_git_to_another_repository_is_cleared(project_folder: Path, tmp_path: Path, monkeypatch):
    git(tmp_path, "init", "-q", "elsewhere")
    named = git(tmp_path, "rev-parse", "--local-env-vars").split()
    local = {*named, "GIT_NAMESPACE", "GIT_QUARANTINE_PATH"} - {"GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS"}
    trace = tmp_path / "trace"
    others = {"GIT_TRACE": str(trace), "GIT_TRACE2_EVENT": str(trace), "GIT_CURL_VERBOSE": "1", "GIT_PAGER_IN_USE": "1"}
    others |= {"GIT_NOGLOB_PATHSPECS": "1", "GIT_EXTERNAL_DIFF": "false", "GIT_TEST_FSMONITOR": "false"}
    others |= {"GIT_ATTR_SOURCE": "HEAD~9", "GIT_CEILING_DIRECTORIES": str(tmp_path), "GIT_DIFF_OPTS": "-u9"}
    kept = {
        "GIT_SSH_COMMAND": "ssh -4",
        "GIT_ASKPASS": "/bin/true",
        "GIT_AUTHOR_NAME": "Ann",
        "GIT_LFS_SKIP_SMUDGE": "1",
    }
    kept |= by_count({"user.name": "Ann"})
    for name, value in (dict.fromkeys(local, str(tmp_path / "elsewhere/.git")) | others | kept).items():
        monkeypatch.setenv(name, value)
    environment = git_environment(project_folder)
    assert not (local | others.keys()) & environment.keys()
    assert kept.items() <= environment.items()
    project = find_project(project_folder)
    assert (project.root, project.git.git_dir) == (project_folder, project_folder / ".git")
    assert "ok.txt" in project.index().files
    assert project.ask(["diff", "--stat"]).stdout == b""
    assert not trace.exists()


def test_git_s_own_programs_do_not_come_from_the_project(project_folder: Path, monkeypatch):
    monkeypatch.setenv("GIT_EXEC_PATH", str(project_folder / "bin"))
    assert git_environment(project_folder)["GIT_EXEC_PATH"] == ""
    assert find_project(project_folder).index().files


@pytest.mark.parametrize("way", [by_count, by_parameters, None])
def test_a_configuration_runs_nothing_more_where_variables_give_it(
    way, project_folder: Path, tmp_path: Path, run_code_commit: Run
):
    """A filter alone may run, before the first answer, where git's index does not know that a file is unchanged."""
    spy = tmp_path / "spy"
    spy.write_text(f'#!/bin/sh\necho "$0 $*" >>{tmp_path}/ran\ncat\n')
    spy.chmod(0o755)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-index-change", "reference-transaction", "pre-commit", "post-checkout", "fsmonitor-watchman"):
        (hooks / name).symlink_to(spy)
    (project_folder / ".gitattributes").write_text("*.txt filter=mine diff=mine\n*.sh filter=a=b\n")
    git(project_folder, "add", "-A")
    git(project_folder, "commit", "-qm", "attributes")
    values = {"core.fsmonitor": str(spy), "core.hooksPath": str(hooks), "diff.external": str(spy)}
    values |= {"filter.mine.smudge": str(spy), "diff.mine.textconv": str(spy), "log.showSignature": "true"}
    values |= {"gpg.program": str(spy), "core.pager": str(spy), "filter.mine.clean": f"{spy} clean"}
    values |= {"filter.a=b.clean": f"{spy} clean"}
    if way is None:
        for name, value in values.items():
            git(project_folder, "config", name, value)
    os.utime(project_folder / "ok.txt", (1, 1))
    os.utime(project_folder / "build.sh", (1, 1))
    options = [*recorded(project_folder, FAILS, PASSES), "--sandbox", "off", "--rollup", "fresh"]
    variables = way(values) if way else {}
    build = f"#!/bin/sh\nmv {tmp_path}/ran {tmp_path}/before 2>/dev/null\ngrep -q '^ok$' ok.txt\n"
    (project_folder / "build.sh").write_text(build)
    for words in (options, ["diff"], ["log"], ["undo"]):
        done = run_code_commit(project_folder, *words, env=variables)
        assert done.returncode == 0, done.stderr
        assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text()
    before = (tmp_path / "before").read_text() if (tmp_path / "before").exists() else ""
    assert set(before.splitlines()) <= {f"{spy} clean"}


@pytest.mark.root
def test_the_words_of_git_are_shown_without_its_tabs(project_folder: Path, run_code_commit: Run):
    os.chown(project_folder, 65534, -1)
    done = run_code_commit(project_folder, "diff")
    assert done.returncode == 2
    lines = [line.strip() for line in done.stderr.splitlines()]
    assert lines[-1] == f"git config --global --add safe.directory {project_folder}"


def test_a_git_file_that_leads_nowhere_is_not_taken_for_no_repository(project_folder: Path, run_code_commit: Run):
    shutil.rmtree(project_folder / ".git")
    (project_folder / ".git").write_text("gitdir: /nowhere/.git/worktrees/one\n")
    (project_folder / "sub").mkdir()
    for folder in (project_folder, project_folder / "sub"):
        done = run_code_commit(folder, "rollup")
        git_says = subprocess.run(["git", "status"], cwd=folder, capture_output=True, text=True, check=False).stderr
        assert "(or any" not in git_says  # most versions name the place
        assert (done.returncode, git_says.strip() in done.stderr) == (2, True), done.stderr
