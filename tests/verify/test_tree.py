"""What stands in the tree: set-ups of every kind, each with a path that must be refused by its rule, nothing changed."""

import ast
import hashlib
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from command import git
from telling import tell

from code_commit.changes import (
    FileChange,
    FileRemoval,
    FileReplacement,
    RejectedResponseError,
    VerifiedChanges,
)
from code_commit.errors import NotSetUpError
from code_commit.project import find_project
from code_commit.redaction import Redactor
from code_commit.settings import Settings
from code_commit.verify import capture_rules, verify_changes
from code_commit.verify.tree import other_spelling
from code_commit.views import Removed, Sight

REFUSED: list[tuple[str, Callable[[Path], None], tuple[str, ...], str]] = []


def refused(paths: str | tuple[str, ...], rule: str) -> Callable[[Callable[[Path], None]], Callable[[Path], None]]:
    """Register a set-up: after it a response that writes these paths breaks this rule with the last of them."""

    def register(build: Callable[[Path], None]) -> Callable[[Path], None]:
        REFUSED.append((build.__name__, build, (paths,) if isinstance(paths, str) else paths, rule))
        return build

    return register


def verify(root: Path, *changes: FileChange | str, **settings) -> VerifiedChanges:
    project = find_project(root)
    rules = capture_rules(project, Settings(**settings), Redactor([]))
    all_changes = [
        FileReplacement(change, "new\n", line) if isinstance(change, str) else change
        for line, change in enumerate(changes, 1)
    ]
    return verify_changes(all_changes, project, rules, None)


def rules_broken(root: Path, *changes: FileChange | str, **settings) -> set[tuple[str, str]]:
    try:
        verify(root, *changes, **settings)
    except RejectedResponseError as error:
        return {(violation.path, violation.rule) for violation in error.violations}
    return set()


def tree_hash(root: Path) -> str:
    """Return a digest of every name, kind, mode, link target and content below the root, git's index stamps apart."""
    digest = hashlib.sha256()
    for folder, folders, files in os.walk(root):
        folders.sort()
        for name in sorted([*folders, *files]):
            path = Path(folder, name)
            status = path.lstat()
            digest.update(f"{path}\0{status.st_mode}\0{status.st_mtime_ns}\0{status.st_ino}\0".encode())
            if stat.S_ISLNK(status.st_mode):
                digest.update(os.fsencode(path.readlink()))
            if stat.S_ISREG(status.st_mode):
                digest.update(path.read_bytes())
    return digest.hexdigest()


def write(path: Path, text: str = "old\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def nested_repository(folder: Path) -> None:
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    write(folder / "a.txt")


# Links


@refused("link/x.txt", "link")
def folder_link_to_the_outside(root):
    outside = root.parent / "outside"
    outside.mkdir()
    (root / "link").symlink_to(outside)


@refused("link/x.txt", "link")
def folder_link_by_a_relative_target(root):
    (root / "link").symlink_to("..")


@refused("link/config", "link")
def folder_link_to_the_git_folder(root):
    (root / "link").symlink_to(".git")


@refused("link/query.txt", "link")
def folder_link_to_agent_config(root):
    (root / "link").symlink_to("agent-config")


@refused("link/x.txt", "link")
def folder_link_inside_the_project(root):
    write(root / "src/x.txt")
    (root / "link").symlink_to("src")


@refused("a/b/link/c/x.txt", "link")
def folder_link_deep_below(root):
    (root / "a/b").mkdir(parents=True)
    (root / "a/b/link").symlink_to(root)


@refused("link.txt", "link")
def file_link_to_a_protected_file(root):
    (root / "link.txt").symlink_to("build.sh")


@refused("link.txt", "link")
def file_link_to_the_outside(root):
    write(root.parent / "outside.txt")
    (root / "link.txt").symlink_to(root.parent / "outside.txt")


@refused("link.txt", "link")
def file_link_inside_the_project(root):
    (root / "link.txt").symlink_to("ok.txt")


@refused("link.txt", "link")
def dangling_link(root):
    (root / "link.txt").symlink_to("nowhere")


@refused("dangling/x.txt", "link")
def dangling_link_as_folder(root):
    (root / "dangling").symlink_to("nowhere")


@refused("loop/x.txt", "link")
def link_to_itself(root):
    (root / "loop").symlink_to("loop")


@refused("loop.txt", "link")
def link_loop_as_target(root):
    (root / "loop.txt").symlink_to("other.txt")
    (root / "other.txt").symlink_to("loop.txt")


@refused("link/x.txt", "link")
def link_to_the_root_itself(root):
    (root / "link").symlink_to(".")


@refused("proc/x", "link")
def link_to_a_magic_folder(root):
    (root / "proc").symlink_to("/proc/self/root")


# What is no file


@refused("src", "not-a-file")
def target_is_a_folder(root):
    write(root / "src/a.txt")


@refused("empty", "not-a-file")
def target_is_an_empty_folder(root):
    (root / "empty").mkdir()


@refused("pipe", "not-a-file")
def target_is_a_fifo(root):
    os.mkfifo(root / "pipe")


@refused("pipe/x.txt", "not-a-file")
def fifo_as_folder(root):
    os.mkfifo(root / "pipe")


@refused("s", "not-a-file")
def target_is_a_socket(root):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(root / "s"))


@refused("dev", "not-a-file")
def target_is_a_device(root):
    os.mknod(root / "dev", stat.S_IFCHR | 0o600, os.makedev(1, 3))


@refused("file/x.txt", "not-a-file")
def parent_is_a_file(root):
    write(root / "file")


@refused("file/a/b/c.txt", "not-a-file")
def ancestor_is_a_file(root):
    write(root / "file")


# Protected by another name


@refused("copy.sh", "protected")
def hard_link_to_build_sh(root):
    os.link(root / "build.sh", root / "copy.sh")


@refused(".hooks/pre-commit", "protected")
def folder_of_core_hookspath(root):
    git(root, "config", "core.hooksPath", ".hooks")


@refused("Tools/HOOKS/x", "protected")
def folder_of_core_hookspath_in_another_case(root):
    git(root, "config", "core.hooksPath", "tools/hooks")


@refused("store/config", "protected")
def git_folder_that_a_git_file_points_to(root):
    (root / ".git").rename(root / "store")
    write(root / ".git", "gitdir: store\n")


@refused("scripts/real.sh", "protected")
def target_of_a_link_named_build_sh(root):
    (root / "scripts").mkdir()
    (root / "build.sh").rename(root / "scripts/real.sh")
    (root / "build.sh").symlink_to("scripts/real.sh")


@refused("shared-hooks/pre-commit", "protected")
def target_of_a_link_in_the_place_of_the_hooks(root):
    (root / "shared-hooks").mkdir()
    (root / "hooks").symlink_to("shared-hooks")
    git(root, "config", "core.hooksPath", "hooks")


@refused("shared-hooks/pre-commit", "protected")
def missing_target_of_a_link_in_the_place_of_the_hooks(root):
    shutil.rmtree(root / ".git/hooks")
    (root / ".git/hooks").symlink_to("../shared-hooks")


# What git is configured by


@refused("team/git.inc", "protected")
def file_that_the_configuration_includes(root):
    git(root, "config", "include.path", "../team/git.inc")
    write(root / "team/git.inc", "[core]\n\tignoreCase = false\n")


@refused("deep/er.inc", "protected")
def file_that_an_included_file_includes_and_that_is_missing(root):
    git(root, "config", "include.path", "../deep/git.inc")
    write(root / "deep/git.inc", "[include]\n\tpath = er.inc\n")


@refused("sometimes.inc", "protected")
def file_that_the_configuration_includes_on_another_branch(root):
    git(root, "config", "includeIf.onbranch:other.path", f"{root}/sometimes.inc")


@refused("Hidden.TXT", "protected")
def core_excludesfile_in_another_case(root):
    git(root, "config", "core.excludesFile", "hidden.txt")


@refused("src/attributes", "protected")
def core_attributesfile_through_a_link(root):
    (root / "conf").symlink_to("src")
    git(root, "config", "core.attributesFile", "conf/attributes")


@refused("src/mine", "protected")
def core_excludesfile_beside_an_empty_core_attributesfile(root):
    git(root, "config", "core.attributesFile", "")
    git(root, "config", "core.excludesFile", "src/mine")
    assert rules_broken(root, "src/other") == set()


@refused("home/.gitconfig", "protected")
def configuration_of_the_user_that_is_a_link_into_the_project(root):
    (Path.home() / ".gitconfig").rename(root / "gitconfig.old")
    (Path.home() / ".gitconfig").symlink_to(root / "home" / ".gitconfig")


@refused("ignore", "protected")
def ignore_rules_of_the_user_that_are_a_link_into_the_project(root):
    (Path.home() / ".config/git").mkdir(parents=True)
    (Path.home() / ".config/git/ignore").symlink_to(root / "ignore")


# Other repositories


@refused("lib/a.txt", "other-repository")
def nested_repository_below(root):
    nested_repository(root / "lib")


@refused("lib/deep/new/a.txt", "other-repository")
def new_folder_in_a_nested_repository(root):
    nested_repository(root / "lib")


@refused("lib/a.txt", "other-repository")
def nested_worktree_whose_git_is_a_file(root):
    git(root, "worktree", "add", "-q", "lib")


@refused("lib/a.txt", "other-repository")
def submodule(root):
    nested_repository(root.parent / "origin")
    git(root.parent / "origin", "add", "-A")
    git(root.parent / "origin", "commit", "-qm", "x")
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(root.parent / "origin"), "lib")


@refused("lib/a.txt", "other-repository")
def submodule_without_files(root):
    submodule(root)
    git(root, "submodule", "--quiet", "deinit", "-f", "lib")
    assert not (root / "lib/.git").exists()


@refused("lib", "other-repository")
def file_in_the_place_of_a_submodule(root):
    submodule(root)
    git(root, "submodule", "--quiet", "deinit", "-f", "lib")
    (root / "lib").rmdir()
    write(root / "lib")


@refused("lib", "other-repository")
def file_in_the_place_of_a_submodule_without_a_folder(root):
    submodule(root)
    git(root, "submodule", "--quiet", "deinit", "-f", "lib")
    (root / "lib").rmdir()


@refused("lib/x.txt", "other-repository")
def folder_with_a_dangling_git_link(root):
    (root / "lib").mkdir()
    (root / "lib/.git").symlink_to("nowhere")


@refused("fixture/config", "other-repository")
def bare_repository(root):
    (root / "fixture").mkdir()
    git(root / "fixture", "init", "-q", "--bare")


@refused("fixture/objects/k", "other-repository")
def bare_repository_that_lacks_its_objects(root):
    write(root / "fixture/HEAD", "ref: refs/heads/main\n")
    (root / "fixture/refs").mkdir()


@refused(("fx/HEAD", "fx/config", "fx/objects/k", "fx/refs/k"), "other-repository")
def bare_repository_made_by_the_response_alone(root):
    pass


@refused(("fx/head", "fx/OBJECTS/k", "fx/Refs/k"), "other-repository")
def bare_repository_in_another_case(root):
    pass


@refused("fx/HEAD", "other-repository")
def head_beside_objects_and_refs(root):
    (root / "fx/objects").mkdir(parents=True)
    (root / "fx/refs").mkdir()


@refused(("fx/HEAD", "fx/CommonDir"), "other-repository")
def repository_made_by_the_response_whose_objects_are_elsewhere(root):
    git(root, "init", "-q", "--bare", "store")


@refused("fx/commondir", "other-repository")
def commondir_beside_a_head(root):
    write(root / "fx/HEAD", "ref: refs/heads/main\n")


@refused("fx/HEAD", "other-repository")
def head_beside_a_commondir(root):
    write(root / "fx/commondir", "../store\n")


@refused("fx/config", "other-repository")
def repository_whose_objects_are_elsewhere(root):
    write(root / "fx/HEAD", "ref: refs/heads/main\n")
    write(root / "fx/commondir", "../store\n")


# Hidden, twins, limits


@refused("ok.txt", "hidden")
def skip_worktree_entry(root):
    git(root, "update-index", "--skip-worktree", "ok.txt")


@refused("ok.txt", "hidden")
def assume_unchanged_entry(root):
    git(root, "update-index", "--assume-unchanged", "ok.txt")


@refused("data/x.txt", "hidden")
def file_outside_of_the_sparse_checkout(root):
    write(root / "data/x.txt")
    write(root / "src/y.txt")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "x")
    git(root, "sparse-checkout", "set", "--cone", "src")
    assert not (root / "data").exists()


@refused("ok.txt/new/x.txt", "hidden")
def file_below_a_tracked_file_that_is_gone(root):
    (root / "ok.txt").unlink()


@refused("deep/ok.txt/x.txt", "hidden")
def file_in_a_folder_that_took_a_tracked_files_place(root):
    write(root / "deep/ok.txt")
    git(root, "add", "-A")
    (root / "deep/ok.txt").unlink()
    write(root / "deep/ok.txt/x.txt")


@refused((*(f"new{number}/x.txt" for number in range(70)), "ok.txt/x.txt"), "hidden")
def many_files_and_one_below_a_tracked_file(root):
    (root / "ok.txt").unlink()


@refused(("src/a.txt", "src/A.txt"), "same-file")
def case_twins_in_the_response(root):
    pass


@refused(("Src/a.txt", "src/b.txt"), "same-file")
def folder_case_twins_in_the_response(root):
    pass


@refused(("caf\u00e9.md", "cafe\u0301.md"), "same-file")
def normalisation_twins_in_the_response(root):
    pass


@refused(("a", "a/b"), "same-file")
def file_and_folder_of_one_name(root):
    pass


@refused(("a/b", "a"), "same-file")
def folder_and_file_of_one_name(root):
    pass


@refused(("a/b", "A"), "same-file")
def folder_and_file_of_one_name_in_another_case(root):
    pass


@refused("x" * 250 + ".txt.rs", "too-long")
def name_that_the_file_system_does_not_take(root):
    pass


@refused("build/out.txt", "ignored")
def ignored_by_a_nested_gitignore(root):
    write(root / "build/.gitignore", "*\n")


@refused("src/x.txt", "ignored")
def gitignore_that_is_a_fifo(root):
    (root / "src").mkdir()
    os.mkfifo(root / "src/.gitignore")


@pytest.fixture
def root(project_folder: Path) -> Path:
    return project_folder


def needs(name: str) -> list[pytest.MarkDecorator]:
    """Only root makes devices, and opens a folder that may not be listed."""
    return [pytest.mark.root] if name in ("target_is_a_device", "folder_that_may_not_be_listed") else []


@pytest.mark.parametrize(
    ("build", "paths", "rule"), [pytest.param(*row, id=name, marks=needs(name)) for name, *row in REFUSED]
)
def test_a_response_is_refused_by_its_rule_and_the_tree_is_untouched(root, build, paths, rule):
    build(root)
    before = tree_hash(root)
    broken = rules_broken(root, *paths, "good.txt")
    whole_response = ("", rule)
    assert (paths[-1], rule) in broken or (build is gitignore_that_is_a_fifo and whole_response in broken)
    assert "good.txt" not in {path for path, _ in broken}
    assert tree_hash(root) == before


def test_there_are_as_many_set_ups_as_the_documentation_says(capsys):
    assert len(REFUSED) >= 55
    tell(capsys, f"set-ups of the tree: {len(REFUSED)} refused, {len(ACCEPTED_SETUPS)} accepted")


# What must pass

ACCEPTED_SETUPS: list[tuple[str, Callable[[Path], None], tuple[str, ...]]] = []


def accepted(*paths: str) -> Callable[[Callable[[Path], None]], Callable[[Path], None]]:
    def register(build: Callable[[Path], None]) -> Callable[[Path], None]:
        ACCEPTED_SETUPS.append((build.__name__, build, paths))
        return build

    return register


@accepted("a.txt", "src/deep/new/b.txt")
def new_files_in_new_folders(root):
    pass


@accepted("shared.txt")
def hard_link_to_an_ordinary_file(root):
    write(root.parent / "store.txt")
    os.link(root.parent / "store.txt", root / "shared.txt")


@accepted("config.txt", "key.txt")
def hard_links_to_protected_files_which_a_rename_leaves_as_they_are(root):
    write(root / "agent-config/gemini-key.txt")
    os.link(root / "agent-config/gemini-key.txt", root / "key.txt")
    os.link(root / ".git/config", root / "config.txt")


@accepted("src/a.txt")
def folder_beside_a_nested_repository(root):
    nested_repository(root / "src/lib")


@accepted("docs/HEAD", "docs/objects.md", "docs/refs/x.md")
def words_of_a_repository_that_make_none(root):
    pass


@accepted(
    "src/head/mod.rs",
    "src/objects/mod.rs",
    "src/refs/mod.rs",
    "a/HEAD/x",
    "a/refs/x",
    "a/objects/y",
    "lib/commondir.rs",
    "lib/HEAD",
)
def modules_named_like_the_parts_of_a_repository(root):
    write(root / "lib/refs.rs")


@accepted("src/target/x.txt", "scripts/build.sh", "sub/Cargo.lock", "docs/agent-config/x")
def names_that_are_protected_in_the_root_only(root):
    write(root / "scripts/build.sh")


@accepted("src/a.txt")
def folder_that_may_not_be_listed(root):
    write(root / "src/a.txt")
    (root / "src").chmod(0o300)


@accepted("src/a.txt")
def gitignore_that_is_a_link(root):
    (root / "src").mkdir()
    write(root.parent / "rules", "*\n")
    (root / "src/.gitignore").symlink_to(root.parent / "rules")


@accepted("a.txt")
def excludes_file_that_is_no_file(root):
    git(root, "config", "core.excludesFile", "/dev/null")


@accepted("src/a.txt", "b/c.txt")
def no_git_repository(root):
    subprocess.run(["rm", "-rf", root / ".git"], check=True)


@pytest.mark.parametrize(
    ("build", "paths"), [pytest.param(*row, id=name, marks=needs(name)) for name, *row in ACCEPTED_SETUPS]
)
def test_a_response_passes(root, build, paths):
    build(root)
    assert {change.path for change in verify(root, *paths).changes} == set(paths)


def test_every_case_comes_with_the_state_of_the_original(root):
    (root / "ok.txt").chmod(0o640)
    (change,) = verify(root, "ok.txt").changes
    assert change.action == "replace"
    assert change.original is not None
    assert (change.original.content, change.original.mode) == (b"not yet\n", 0o640)


def test_a_removal_looks_at_its_target_too(root):
    (root / "link.txt").symlink_to("ok.txt")
    broken = rules_broken(root, FileRemoval("link.txt", 1), FileRemoval("gone.txt", 2), FileRemoval("build.sh", 3))
    assert broken == {("link.txt", "link"), ("gone.txt", "missing"), ("build.sh", "protected")}


def test_a_folder_takes_the_place_of_a_tracked_file_that_an_earlier_answer_removed(root):
    (root / "ok.txt").unlink()
    project, change = find_project(root), FileReplacement("ok.txt/new.txt", "x\n", 1)
    rules = capture_rules(project, Settings(), Redactor([]))
    assert verify_changes([change], project, rules, Sight({"ok.txt": Removed()})).changes[0].path == change.path


def test_another_spelling_of_an_existing_name_is_told_by_the_folders_own(tmp_path):
    write(tmp_path / "README")
    write(tmp_path / "caf\u00e9")
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        upper, accent = (os.stat(name, dir_fd=folder) for name in ("README", "caf\u00e9"))
        assert other_spelling(folder, "readme", upper) == "README"
        assert other_spelling(folder, "cafe\u0301", accent) == "caf\u00e9"
        assert other_spelling(folder, "README", upper) is None
        os.link(tmp_path / "README", tmp_path / "readme")
        assert other_spelling(folder, "readme", upper) is None
    finally:
        os.close(folder)


CASELESS = "mount -t tmpfs -o casefold none mnt && mkdir mnt/p && chattr +F mnt/p && mkdir mnt/p/Src && touch mnt/p/Src/A && cd mnt/p"


@pytest.mark.root("mount")
@pytest.mark.parametrize("path", ["src/b.txt", "Src/a"])
def test_on_a_case_insensitive_file_system_the_folders_spelling_holds(root, path):
    (root / "mnt").mkdir()
    assert mounted_answer(root, CASELESS, path) == [(path, "same-file")]


def test_the_root_may_be_reached_through_a_link(root):
    (root.parent / "alias").symlink_to(root)
    verified = verify(root.parent / "alias", "src/a.txt")
    assert verified.root == root.resolve()


def test_the_project_may_be_a_linked_worktree(root):
    (root / ".git/info/exclude").write_text("*.mine\n")
    git(root, "worktree", "add", "-q", "../other")
    other = root.parent / "other"
    assert (other / ".git").is_file()
    assert rules_broken(other, "ok.txt", "src/new.rs") == set()
    broken = rules_broken(other, "a.mine", ".git", "target/x", "ok.txt")
    assert broken == {("a.mine", "ignored"), (".git", "protected"), ("target/x", "protected")}


def test_the_project_may_be_a_folder_of_a_bigger_repository(root):
    write(root / "sub/part/a.txt")
    (root / "sub/part/agent-config").mkdir()
    write(root / ".gitignore", "/agent-config\n*.tmp\n/sub/part/generated/\n")
    write(root / "sub/.gitignore", "*.out\n")
    assert rules_broken(root / "sub/part", "a.txt") == set()
    broken = rules_broken(root / "sub/part", "x.tmp", "y.out", "generated/z.txt", "build.sh", "fine.txt")
    assert broken == {
        ("x.tmp", "ignored"),
        ("y.out", "ignored"),
        ("generated/z.txt", "ignored"),
        ("build.sh", "protected"),
    }


@pytest.mark.slow
def test_a_deep_path_and_many_folders_leave_no_descriptor_open(root):
    deep = "/".join(["d"] * 1500) + "/x.txt"
    wide = [f"folder{number}/a/x.txt" for number in range(1500)]
    for path in wide:
        (root / path).parent.mkdir(parents=True)
    opened = open_descriptors()
    assert len(verify(root, deep, *wide).changes) == 1501
    assert open_descriptors() == opened


def test_no_descriptor_is_left_open_by_a_refusal(root):
    write(root / "a/b/c/x.txt")
    (root / "a/b/link").symlink_to("c")
    opened = open_descriptors()
    rules_broken(root, "a/b/c/x.txt", "a/b/link/x.txt", "a/b/c", "a/b/c/x.txt/y")
    assert open_descriptors() == opened


def open_descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


MOUNT_SETUPS = {
    "tmpfs": ("mount -t tmpfs none mnt", "mnt/x.txt", "other-file-system"),
    "new folder in a tmpfs": ("mount -t tmpfs none mnt", "mnt/new/x.txt", "other-file-system"),
    "bind mount of the git folder": ("mount --bind .git mnt", "mnt/config", "protected"),
    "bind mount of agent-config": ("mount --bind agent-config mnt", "mnt/query.txt", "protected"),
    "file of another file system": ("mount --bind /proc/version ok.txt", "ok.txt", "other-file-system"),
    "bind mount of build.sh over a file": ("mount --bind build.sh ok.txt", "ok.txt", "protected"),
    "proc": ("mount -t proc none mnt", "mnt/sys/kernel/core_pattern", "other-file-system"),
}

MOUNTED_VERIFY = """
import sys
from pathlib import Path
sys.path[:0] = [{tests!r}, {here!r}]
from test_tree import rules_broken
print(sorted(rules_broken(Path.cwd(), sys.argv[1])))
"""


@pytest.mark.slow
@pytest.mark.root("mount")
@pytest.mark.parametrize(("command", "path", "rule"), MOUNT_SETUPS.values(), ids=MOUNT_SETUPS.keys())
def test_what_is_mounted_inside_the_tree_is_refused(root, command, path, rule):
    (root / "mnt").mkdir()
    assert mounted_answer(root, command, path) == [(path, rule)]


def mounted_answer(root: Path, command: str, path: str) -> list[tuple[str, str]]:
    """Return the rules that the path breaks, asked in a mount namespace of its own after the command."""
    here = Path(__file__).parent
    code = MOUNTED_VERIFY.format(tests=str(here.parent), here=str(here))
    script = f'{command} || exit 77; exec "$0" -c "$1" "$2"'
    answer = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, sys.executable, code, path], cwd=root, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": str(here.parents[1])},
    )  # fmt: skip
    if answer.returncode == 77:
        pytest.skip(f"cannot mount here: {answer.stderr.strip()}")
    assert answer.returncode == 0, answer.stderr
    return ast.literal_eval(answer.stdout)


@pytest.mark.slow
def test_an_index_that_git_cannot_read_rejects_the_whole_response(root):
    project = find_project(root)
    rules = capture_rules(project, Settings(), Redactor([]))
    (root / ".git/index").write_bytes(b"DIRC broken")
    with pytest.raises(RejectedResponseError, match="git ls-files failed"):
        verify_changes([FileReplacement("ok.txt", "ok\n", 1)], project, rules, None)
    with pytest.raises(NotSetUpError, match="git ls-files failed"):
        capture_rules(project, Settings(), Redactor([]))


AS_NOBODY = """
import os, sys
from pathlib import Path
sys.path[:0] = [{tests!r}, {here!r}]
from test_tree import rules_broken
if os.geteuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
print(sorted(rules_broken(Path.cwd(), *sys.argv[1:])))
"""


@pytest.mark.slow
def test_an_unreadable_original_and_a_closed_folder_are_refused():
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        root.chmod(0o755)
        write(root / "secret.txt")
        write(root / "closed/x.txt")
        write(root / "open/x.txt")
        (root / "secret.txt").chmod(0)
        (root / "closed").chmod(0)
        here = Path(__file__).parent
        code = AS_NOBODY.format(tests=str(here.parent), here=str(here))
        answer = subprocess.run(
            [sys.executable, "-c", code, "secret.txt", "closed/x.txt", "open/x.txt", "new/x.txt"],
            cwd=root, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": str(here.parents[1])},
        )  # fmt: skip
        (root / "closed").chmod(0o700)
    assert answer.stdout.strip() == str([("closed/x.txt", "unreadable"), ("secret.txt", "unreadable")]), answer.stderr
