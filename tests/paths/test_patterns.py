"""Patterns of --allow and --protect that match nothing: refused where they never can, else told before the first request."""

import json
import os
from pathlib import Path

import pytest
from command import Run, git, replay, the_log

from code_commit.errors import Named, in_words
from code_commit.paths.patterns import explain_patterns, find_unmatched
from code_commit.terminal import shown

PATHS = ["src/slug.py", "src/util/names.py", "docs/guide.md", "tests/test_slug.py", "Makefile", "caf\u00e9/menu.txt"]

UNMATCHABLE = {
    "an absolute path": ("ROOT/src/", "it is an absolute path: write /src/"),
    "with a wildcard": ("ROOT/src/*.py", "it is an absolute path: write src/*.py"),
    "through a link": ("LINK/src/a.py", "it is an absolute path: write src/a.py"),
    "taken back": ("!ROOT/src/a.py", "it is an absolute path: write !src/a.py"),
    "the project": ("ROOT", "it is an absolute path: write **"),
    "elsewhere": ("/etc/passwd", "it is an absolute path and leads out of the project; patterns start at"),
    "at home": ("~/x.py", "it is an absolute path and leads out of the project; patterns start at"),
    "of Windows": ("C:\\\\x\\\\y.py", "it is an absolute path; patterns start at"),
    "dots": ("../project/src/*.py", "it contains '..': write src/*.py"),
    "dots inside": ("docs/../src/", "it contains '..': write /src/"),
    "dots that leave": ("../other/a.py", "it contains '..' and leads out of the project; patterns start at"),
    "a dot": ("./", "it names the project itself: write ** for all of it"),
    "a slash": ("/", "it names the project itself: write ** for all of it"),
    "a comment": ("# src", "it is a comment: write a backslash before its #"),
    "an open bracket": ("src/[", "it is not a .gitignore pattern"),
}


@pytest.mark.parametrize(("pattern", "told"), UNMATCHABLE.values(), ids=UNMATCHABLE)
def test_a_pattern_that_can_match_nothing_is_told_with_what_to_write(pattern: str, told: str, project_folder: Path):
    (project_folder / "src").mkdir()
    (project_folder.parent / "link").symlink_to(project_folder)
    pattern = pattern.replace("ROOT", str(project_folder)).replace("LINK", str(project_folder.parent / "link"))
    problems = explain_patterns(Named("allow"), [pattern, "src/"], project_folder)
    assert problems.keys() == {pattern}
    assert in_words(problems[pattern]).startswith(f"--allow {shown(pattern)} can match nothing: {told}")


def test_patterns_that_only_take_back_match_nothing(project_folder: Path):
    (told,) = explain_patterns(Named("allow"), ["!src/", "!b"], project_folder).values()
    assert in_words(told) == (
        "--allow !src/ can match nothing: it only takes back what a pattern before it matches: write ** before it"
    )


POSSIBLE = (
    "src/",
    "/src/",
    "./src/a.py",
    "/newfolder/",
    "**/x..y",
    "..rc",
    "!src/a.py",
    "\\#a",
    "etc/passwd",
    "*",
    "/*",
)


def test_what_may_match_a_path_is_not_refused(project_folder: Path):
    assert explain_patterns(Named("allow"), POSSIBLE, project_folder) == {}
    first = project_folder.parts[1]
    (project_folder / first).mkdir()  # then it is that folder, not the one of the file system's root
    assert explain_patterns(Named("allow"), [f"/{first}/a.py"], project_folder) == {}


NEAR = {
    "src/slgu.py": "src/slug.py",
    "sorc/*.py": "src/*.py",
    "/test/": "/tests/",
    "test/": "tests/",
    "slgu.py": "slug.py",
    "lib/slug.py": "src/slug.py",
    "src\\slug.py": "src/slug.py",
    "SRC/slug.py": "src/slug.py",
    "makefile": "Makefile",
    "!src/slgu.py": "!src/slug.py",
    "src/utils/names.py": "src/util/names.py",
    "*.pyy": "",
    "brand/new.py": "",
    "src/*.pyy": "",
    "# x": "",
}


def test_a_pattern_that_matches_no_path_comes_with_one_that_resembles_it():
    assert dict(find_unmatched(NEAR, PATHS)) == NEAR


MATCHING = (
    "src/",
    "/src",
    "slug.py",
    "*.py",
    "s[lx]ug.*",
    "src/**",
    "./src/slug.py",
    "src//slug.py",
    "cafe\u0301/",
    "caf*/",
)


def test_a_pattern_that_matches_a_path_is_not_told():
    assert list(find_unmatched(MATCHING, PATHS)) == []
    assert list(find_unmatched(["SRC/", "makefile"], PATHS, any_case=True)) == []
    assert list(find_unmatched(["new.txt"], PATHS, lambda: ["new.txt"])) == []


def test_a_pattern_of_any_place_that_matches_no_file_is_told_before_the_first_request(
    project_folder: Path, run_code_commit: Run
):
    root, told = (
        project_folder,
        "okk.txt matches no file that git tracks or would track: it protects no existing file; did you mean 'ok.txt'?",
    )
    arguments, nobody = replay(root, "^^^ok.txt\nok\n^^^end\n"), ["--model", "replay:agent-config/nobody"]
    (root / "agent-config" / "nobody").mkdir()
    done = run_code_commit(root, *nobody, "--protect", "okk.txt", "--allow", "ok.txt")
    assert done.returncode == 3, "no answer was there"
    assert f"warning: --protect {told}" in done.stderr
    record = json.loads((the_log(root) / "run.json").read_text())
    assert f"--protect {told}" in [warning["message"] for warning in record["warnings"]]
    checked = run_code_commit(root, "check", *arguments, env={"CODE_COMMIT_PROTECT": "okk.txt"})
    assert f"CODE_COMMIT_PROTECT {told}" in " ".join(checked.stdout.split())
    (root / "agent-config" / "config.toml").write_text("protect = ['okk.txt']\nallow = ['new.txt', 'ok.txt']\n")
    checked = run_code_commit(root, "check", *arguments)
    said = " ".join(checked.stdout.split())
    assert (checked.returncode, f"config.toml's protect {told}" in said) == (0, True), checked.stdout
    assert (
        "config.toml's allow new.txt matches no file that git tracks or would track: it allows only new files" in said
    )
    (root / "new.txt").write_text("")
    assert "new.txt" not in run_code_commit(root, "check", *arguments).stdout, "git would track it"


def test_apply_refuses_what_can_match_nothing_too(project_folder: Path, run_code_commit: Run):
    (project_folder / "answer.txt").write_text("^^^ok.txt\nok\n^^^end\n")
    done = run_code_commit(project_folder, "apply", "answer.txt", "--protect", f"{project_folder}/ok.txt")
    assert (done.returncode, "can match nothing: it is an absolute path: write /ok.txt\n" in done.stderr) == (2, True)
    assert (project_folder / "ok.txt").read_text() == "not yet\n"


def test_a_decomposed_pattern_protects_a_composed_path(project_folder: Path, run_code_commit: Run):
    (project_folder / "caf\u00e9").mkdir()
    (project_folder / "caf\u00e9" / "menu.txt").write_text("tea\n")
    git(project_folder, "add", "-A")
    (project_folder / "answer.txt").write_text("^^^caf\u00e9/menu.txt\ncoffee\n^^^end\n", encoding="utf-8")
    for pattern in ("cafe\u0301/", ".//caf\u00e9/./menu.txt"):
        done = run_code_commit(project_folder, "apply", "answer.txt", "--protect", pattern)
        assert (done.returncode, "protected by --protect" in done.stderr) == (4, True), done.stderr
        assert "matches no file" not in done.stderr


def test_a_list_of_a_fleet_refuses_it_before_anything_is_cloned(
    project_folder: Path, run_code_commit: Run, tmp_path: Path
):
    task = {"id": "a", "repository": str(project_folder), "query": "x", "settings": {"protect": ["../a/src/"]}}
    (tmp_path / "tasks.jsonl").write_text(json.dumps(task))
    done = run_code_commit(tmp_path, "fleet", "tasks.jsonl", "--out", "out")
    assert (done.returncode, "protect ../a/src/ can match nothing: it contains '..'" in done.stderr) == (2, True), (
        done.stderr
    )
    assert not os.path.lexists(tmp_path / "out")
