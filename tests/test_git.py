"""Questions to git: whose answer counts, and what happens without one."""

import os
from pathlib import Path
from random import Random

from command import Run, git, recorded
from telling import tell

from code_commit.git import match_patterns
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
