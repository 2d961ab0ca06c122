"""New files that are likely meant to be existing ones: rejected once, accepted with a warning when they come again."""

from pathlib import Path

import pytest
from command import git
from test_tree import write

from code_commit.changes import Edit, EditBlock, FileRemoval, FileReplacement, Reasons, RejectedResponseError
from code_commit.project import find_project
from code_commit.redaction import Redactor
from code_commit.settings import Settings
from code_commit.verify import capture_rules, verify_changes
from code_commit.views import Name, Removed, Sight, Unsure, Views, whole_of


@pytest.fixture
def root(project_folder: Path) -> Path:
    return project_folder


SLUG = "".join(f"line {number}\n" for number in range(12))
CHANGED = SLUG.replace("line 3", "another line")
OTHER = "".join(f"something else {number}\n" for number in range(12))

ASTRAY = {
    # the new files with their content, the query, those of them that are astray
    "a folder before": ({"src/slug/core.py": CHANGED}, "", ["src/slug/core.py"]),
    "the project's own name before": ({"myproject/setup.py": CHANGED}, "", ["myproject/setup.py"]),
    "two folders before": ({"new/src/slug/core.py": CHANGED}, "", ["new/src/slug/core.py"]),
    "a folder in one that is there": ({"slug/new/setup.py": CHANGED}, "", ["slug/new/setup.py"]),
    "a folder twice": ({"slug/slug/core.py": CHANGED}, "", ["slug/slug/core.py"]),
    "folders twice": ({"packages/app/packages/app/main.py": CHANGED}, "", ["packages/app/packages/app/main.py"]),
    "a folder of its name": ({"packages/app/app/other.py": CHANGED}, "", []),
    "a folder less": ({"app/main.py": CHANGED}, "Change packages/app/main.py.", ["app/main.py"]),
    "beside a new file": ({"src/slug/core.py": CHANGED, "src/slug/new.py": OTHER}, "", ["src/slug/core.py"]),
    "beside one of another folder": ({"src/slug/core.py": CHANGED, "tests/a.py": OTHER, "b.py": OTHER}, "", ["src/slug/core.py"]),
    "called PATH": ({"PATH": "x\n", "PATHS": "x\n"}, "", ["PATH"]),
    "named by the query": ({"src/slug/core.py": CHANGED}, "Copy it to src/slug/core.py.", []),
    "named by the query with a dot": ({"src/slug/core.py": CHANGED}, "Copy it to ./src/slug/core.py.", []),
    "its folder named by the query": ({"src/slug/core.py": CHANGED}, "Begin a layout in `src/`.", []),
    "a copy": ({"src/slug/core.py": SLUG}, "", []),
    "a copy with other line ends": ({"src/dos.py": SLUG}, "", []),
    "mostly new files": ({"src/setup.py": CHANGED, "src/a.py": OTHER, "src/b/c.py": OTHER}, "", []),
    "a folder that is there": ({"docs/setup.py": CHANGED}, "", []),
    "a file in the root": ({"main.py": CHANGED}, "", []),
    "other content": ({"src/slug/core.py": OTHER}, "", []),
    "a short one": ({"src/short.py": "a\nb\nc\nd\n"}, "", []),
    "the old one changes too": ({"src/slug/core.py": CHANGED, "slug/core.py": "from src.slug.core import *\n"}, "", []),
}  # fmt: skip


@pytest.fixture
def slug(root: Path) -> Path:
    for path in ("slug/core.py", "setup.py", "packages/app/main.py"):
        write(root / path, SLUG)
    write(root / "short.py", "a\nb\nc\n")
    write(root / "dos.py", SLUG.replace("\n", "\r\n"))
    write(root / "docs/index.md")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "start")
    return root


def find(rule: str, root: Path, files: dict[str, str], query: str, *again: str) -> tuple[list[str], list[str]]:
    """Return the paths that are rejected, and those that are warned about."""
    project, changes = find_project(root), [FileReplacement(path, content) for path, content in files.items()]
    rules = capture_rules(project, Settings(), Redactor([]), query)
    reasons = Reasons(lambda known: known[:2] in {(rule, path) for path in again})
    try:
        verified = verify_changes(changes, project, rules, None, reasons)
    except RejectedResponseError as error:
        return [violation.path for violation in error.violations if violation.rule == rule], []
    return [], [warning.path for warning in verified.warnings if warning.kind == rule]


@pytest.mark.parametrize(("files", "query", "astray"), ASTRAY.values(), ids=ASTRAY)
def test_a_file_under_a_path_that_is_not_meant_is_rejected_and_sent_again_warned_about(files, query, astray, slug):
    assert find("astray", slug, files, query) == (astray, [])
    assert find("astray", slug, files, query, *astray) == ([], astray)


def test_a_moved_file_is_not_astray_and_the_reason_names_the_one_that_is_there(slug):
    moved, removed = FileReplacement("src/slug/core.py", CHANGED, 1), FileRemoval("slug/core.py", 5)
    project = find_project(slug)
    rules = capture_rules(project, Settings(), Redactor([]), "")
    assert len(verify_changes([moved, removed], project, rules, None).changes) == 2
    with pytest.raises(
        RejectedResponseError, match=r"has most lines of slug/core\.py, and there is no folder src/: write slug"
    ) as rejected:
        verify_changes([moved], project, rules, None)
    assert rejected.value.may_be_meant


INIT = "".join(f"def f{number}(): ...\n" for number in range(12))
EDITED = INIT.replace("f3", "g3")

COPIES = {
    # the new files with their content, the query, those of them that are copies
    "a module beside its package": ({"slug.py": EDITED}, "", ["slug.py"]),
    "a module beside its package, deeper": ({"src/text.ts": EDITED}, "", ["src/text.ts"]),
    "another file of the package": ({"tools.py": EDITED}, "", ["tools.py"]),
    "the same name in the root": ({"only.py": EDITED}, "", ["only.py"]),
    "the same name in another folder": ({"docs/only.py": EDITED}, "", ["docs/only.py"]),
    "another suffix": ({"lib/only.pyw": EDITED}, "", ["lib/only.pyw"]),
    "named by the query": ({"slug.py": EDITED}, "Make a module of it, slug.py.", []),
    "other content": ({"slug.py": OTHER}, "", []),
    "an exact copy": ({"slug.py": INIT}, "", []),
    "another name": ({"slugs.py": EDITED}, "", []),
    "a name that several have": ({"docs/index.py": EDITED}, "", []),
    "the old one changes too": ({"slug.py": EDITED, "slug/__init__.py": "from slug.py import *\n"}, "", []),
    "a few lines of it": ({"slug.py": INIT[: len(INIT) // 3]}, "", []),
}


@pytest.fixture
def packages(root: Path) -> Path:
    for path in (
        "slug/__init__.py",
        "src/text/index.ts",
        "lib/tools/deep.py",
        "lib/only.py",
        "lib/index.py",
        "index.py",
    ):
        write(root / path, INIT)
    write(root / "docs/index.md")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "start")
    return root


@pytest.mark.parametrize(("files", "query", "copies"), COPIES.values(), ids=COPIES)
def test_a_copy_of_a_file_that_stays_is_rejected_and_sent_again_warned_about(files, query, copies, packages):
    assert find("copy", packages, files, query) == (copies, [])
    assert find("copy", packages, files, query, *copies) == ([], copies)


def test_a_moved_file_is_no_copy_and_the_reason_names_the_one_that_stays(packages):
    project = find_project(packages)
    rules = capture_rules(project, Settings(), Redactor([]))
    new = FileReplacement("slug.py", EDITED, 1)
    assert len(verify_changes([new, FileRemoval("slug/__init__.py", 9)], project, rules, None).changes) == 2
    with pytest.raises(RejectedResponseError, match=r"slug\.py: has most lines of slug/__init__\.py, which stays"):
        verify_changes([new], project, rules, None)


CODEBASE = {"ok.txt": whole_of("not yet\n"), "src/old.py": whole_of("x = 1\n")}


def gone(root: Path, change: FileReplacement | EditBlock, views: Views = CODEBASE) -> list[tuple[str, bool, str]]:
    """Return the rule, whether it may be meant, and the message of each reason to reject a change."""
    project = find_project(root)
    rules = capture_rules(project, Settings(), Redactor([]))
    try:
        verify_changes([change], project, rules, Sight(views, "--- src/old.py ---\nx = 1\n"))
    except RejectedResponseError as error:
        return [(reason.rule, reason.may_be_meant, reason.message) for reason in error.violations]
    return []


def test_a_file_that_is_gone_is_not_brought_back(root):
    """The codebase is older than the tree."""
    new = FileReplacement("src/old.py", "x = 2\n", 1)
    ((rule, may_be_meant, message),) = gone(root, new)
    assert (rule, may_be_meant) == ("gone", True)
    assert message.startswith("was deleted or renamed after the codebase was made: leave it out")
    assert "(now" not in message
    write(root / "lib/old.py")
    git(root, "add", "-A")
    assert "where its code is now (lib/old.py?)" in gone(root, new)[0][2]
    ((rule, may_be_meant, _),) = gone(root, EditBlock("src/old.py", (Edit("x = 1\n", "x = 2\n"),), 1))
    assert (rule, may_be_meant) == ("gone", False)


def test_a_file_that_the_run_removed_may_come_back_and_another_is_new(root):
    new = FileReplacement("src/old.py", "x = 2\n", 1)
    assert gone(root, new, CODEBASE | {"src/old.py": Removed()}) == []
    assert gone(root, new, CODEBASE | {"src/old.py": Name(6)}) == []
    assert gone(root, new, CODEBASE | {"src/old.py": Unsure()}) != []
    assert gone(root, FileReplacement("src/new.py", "x = 2\n", 1)) == []
    assert gone(root, FileReplacement("ok.txt", "x\n", 1)) == []
