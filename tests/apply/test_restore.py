"""Undo: byte and mode exact, refused when somebody changed something since, itself undoable, and never from a bad snapshot."""

import shutil
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from apply_driver import NEW_FILES, OLD_FILES, SNAPSHOT, make_tree, read_tree, verified

from code_commit.apply.failures import ChangedSinceError
from code_commit.apply.restore import UndoScope, find_overwritten, note_built, redo, restore
from code_commit.apply.transaction import apply_changes
from code_commit.errors import ApplyError
from code_commit.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_tree(tmp_path / "tree")


def run_folder(project: Project, name: str) -> Path:
    return project.logs / name / "snapshot"


def apply(project: Project, wanted: Mapping[str, bytes | None], run: str = "one") -> None:
    apply_changes(verified(project.root, wanted), project, run_folder(project, run))


def undo(project: Project, run: str, to: str = "undo", *, force: bool = False) -> list[str]:
    restored = restore(run_folder(project, run), project, run_folder(project, to), force=force)
    return [f"{file.action} {file.path}" for file in restored]


def test_undo_is_exact_and_says_what_it_did(project: Project) -> None:
    before = read_tree(project.root)
    apply(project, NEW_FILES)
    done = undo(project, "one")
    assert read_tree(project.root) == before
    assert done == sorted(done, key=lambda line: line.partition(" ")[2])
    assert len(done) == 20
    assert {"replace src/a.py", "delete new.txt", "create gone/two/three.txt"} < set(done)


def test_the_contents_of_an_undo_are_returned(project: Project) -> None:
    apply(project, {"src/a.py": b"a = 2\n", "new.txt": b"new\n", "run.sh": None})
    restored = restore(run_folder(project, "one"), project, run_folder(project, "undo"))
    assert [(file.path, file.old, file.new) for file in restored] == [
        ("new.txt", b"new\n", None),
        ("run.sh", None, OLD_FILES["run.sh"][1]),
        ("src/a.py", b"a = 2\n", b"a = 1\n"),
    ]


def test_undo_of_undo_and_so_on(project: Project) -> None:
    before = read_tree(project.root)
    apply(project, NEW_FILES, "run-0")
    after = read_tree(project.root)
    for number in range(4):
        undo(project, f"run-{number}", to=f"run-{number + 1}")
        assert read_tree(project.root) == (after if number % 2 else before)


def test_several_attempts_of_a_run_are_undone_together(project: Project) -> None:
    before = read_tree(project.root)
    apply(project, {"src/a.py": b"a = 2\n", "run.sh": None, "x/y": b"1"})
    (project.root / "src/a.py").write_bytes(b"a=2 # formatted by the build\n")
    apply(project, {"src/a.py": b"a = 3\n", "run.sh": b"back\n", "x/y": None, "x/z": b"2"})
    apply(project, {"src/a.py": None, "x/z": None, "README.md": b"R\n"})
    originals = sorted(path.read_bytes() for path in run_folder(project, "one").glob("originals/*"))
    edited = b"a=2 # formatted by the build\n"
    assert originals == sorted([edited, *(OLD_FILES[path][1] for path in ("src/a.py", "run.sh", "README.md"))])
    undo(project, "one")
    assert read_tree(project.root) == before


def test_what_each_build_of_an_attempt_did_to_its_files_is_put_back_and_done_again(project: Project) -> None:
    """A resumed run repeats a build, and the one before it may have formatted another file."""
    before = read_tree(project.root)
    new = {"src/a.py": b"a = 2\n", "new.txt": b"new\n", "run.sh": b"x\n", "x.txt": b"x\n"}
    apply(project, new | {"README.md": None})
    (project.root / "x.txt").unlink()
    (project.root / "README.md").write_bytes(b"back\n")
    (project.root / "run.sh").chmod(0o700)  # what git does not store is none of it
    built = {"README.md": (None, b"back\n"), "x.txt": (b"x\n", None)}
    for path in ("src/a.py", "new.txt"):
        (project.root / path).write_bytes(b"formatted by the build\n")
        built[path] = new[path], b"formatted by the build\n"
        found = note_built(run_folder(project, "one"), project)
        assert [(file.path, file.old, file.new) for file in found] == [(name, *built[name]) for name in sorted(built)]
    after = read_tree(project.root)
    undo(project, "one")
    assert read_tree(project.root) == before
    redo(run_folder(project, "one"), project, run_folder(project, "again"))
    assert read_tree(project.root) == after


@pytest.mark.parametrize("who", ["user", "build"])
def test_an_edit_that_the_next_answer_overwrites_is_named_whoever_made_it(project: Project, who: str) -> None:
    apply(project, {"src/a.py": b"a = 2\n", "run.sh": b"x\n"})
    (project.root / "src/a.py").write_bytes(b"a = 20\n")
    (project.root / "run.sh").write_bytes(b" x\n")  # white space alone is nobody's work
    if who == "build":
        note_built(run_folder(project, "one"), project)
    apply(project, {"src/a.py": b"a = 3\n", "run.sh": b"y\n"})
    assert find_overwritten(run_folder(project, "one")) == ["src/a.py"]


def test_a_folder_that_went_and_came_keeps_its_mode(project: Project) -> None:
    before = read_tree(project.root)
    apply(project, {"gone/one.txt": None, "gone/two/three.txt": None})
    assert not (project.root / "gone").exists()
    apply(project, {"gone/two/four.txt": b"4\n"})
    assert stat.S_IMODE((project.root / "gone/two").stat().st_mode) == 0o700
    undo(project, "one")
    assert read_tree(project.root) == before


def test_an_undo_of_some_files_brings_back_their_folders_and_leaves_those_of_the_others(project: Project) -> None:
    before = read_tree(project.root)
    apply(project, {"gone/one.txt": None, "gone/two/three.txt": None, "made/a/x": b"x", "made/b/y": b"y"})
    for number, path in enumerate(["gone/two/three.txt", "made/a/x", "gone/one.txt", "made/b/y"]):
        restore(run_folder(project, "one"), project, run_folder(project, f"undo-{number}"), scope=UndoScope([path]))
        found, after = read_tree(project.root), {"made", "made/b", "made/b/y"} - {path}
        assert {name: found[name] for name in found.keys() & before.keys()} == {
            name: before[name] for name in found.keys() & before.keys()
        }
        assert ("gone/two/three.txt" in found, "made/a" in found) == (True, number < 1)
        assert after <= found.keys() or number == 3
    assert found == before


@pytest.mark.parametrize("turn", [0, 1])
def test_a_file_takes_a_folders_place_and_the_reverse(project: Project, turn: int) -> None:
    before = read_tree(project.root)
    steps: list[dict[str, bytes | None]] = [
        {"run.sh": None, "half/stays.txt": None, "half/goes.txt": None},
        {"run.sh/is/a folder": b"now\n", "half": b"is a file now\n"},
    ]
    for step in steps:
        apply(project, step)
    after = read_tree(project.root)
    for number in range(turn + 1):
        undo(project, "undo" if number else "one", to="undo again" if number else "undo")
    assert read_tree(project.root) == (after if turn else before)


CHANGES: dict[str, Callable[[Path], object]] = {
    "src/a.py": lambda path: path.write_bytes(b"edited\n"),
    "README.md": lambda path: path.write_bytes(b"# neu\r\n"),
    "new.txt": lambda path: path.write_bytes(b""),
    "run.sh": lambda path: path.chmod(0o700),
    "src/b.py": lambda path: path.unlink(),
    "half/goes.txt": lambda path: path.write_bytes(b"back, but other\n"),
}


@pytest.mark.parametrize("path", CHANGES)
def test_what_changed_since_is_named_and_nothing_restored(project: Project, path: str) -> None:
    before = read_tree(project.root)
    apply(project, NEW_FILES)
    CHANGES[path](project.root / path)
    edited = read_tree(project.root)
    with pytest.raises(ChangedSinceError, match="--force") as caught:
        undo(project, "one")
    assert caught.value.paths == (path,)
    assert path in str(caught.value)
    assert caught.value.exit_code == 1
    assert read_tree(project.root) == edited
    assert not run_folder(project, "undo").exists()
    undo(project, "one", force=True)
    assert read_tree(project.root) == before
    undo(project, "undo", to="undo again")
    assert read_tree(project.root) == edited


def test_all_that_changed_since_is_named(project: Project) -> None:
    apply(project, NEW_FILES)
    for path, change in CHANGES.items():
        change(project.root / path)
    with pytest.raises(ChangedSinceError) as caught:
        undo(project, "one")
    assert caught.value.paths == tuple(sorted(CHANGES))


def test_what_was_put_back_by_hand_is_no_change(project: Project) -> None:
    before = read_tree(project.root)
    apply(project, NEW_FILES)
    (project.root / "src/a.py").write_bytes(OLD_FILES["src/a.py"][1])
    (project.root / "new.txt").unlink()
    assert len(undo(project, "one")) == 18
    assert read_tree(project.root) == before
    assert undo(project, "one", to="nothing") == []
    assert not run_folder(project, "nothing").exists()


def test_an_undo_of_what_is_undone_already_changes_nothing(project: Project) -> None:
    before = read_tree(project.root)
    apply(project, {"gone/two/three.txt": None, "run.sh": None})
    apply(project, {"gone/two": b"a file now\n", "run.sh/is/a folder": b"now\n"})
    assert undo(project, "one")
    assert read_tree(project.root) == before
    assert undo(project, "one", to="again") == []
    assert read_tree(project.root) == before


def test_a_made_folder_stays_while_it_holds_something_else(project: Project) -> None:
    apply(project, {"made/for/x.txt": b"x\n"})
    (project.root / "made/for/build.o").write_bytes(b"by the build\n")
    undo(project, "one")
    assert [path.name for path in (project.root / "made").rglob("*")] == ["for", "build.o"]


def test_an_empty_folder_that_was_there_before_stays(project: Project) -> None:
    before = read_tree(project.root)
    apply(project, {"empty/file.txt": b"1\n"})
    undo(project, "one")
    assert read_tree(project.root) == before
    assert (project.root / "empty").is_dir()


@pytest.mark.parametrize("kind", ["link", "folder"])
def test_a_target_that_is_no_file_any_more_is_never_replaced(project: Project, kind: str) -> None:
    apply(project, NEW_FILES)
    target = project.root / "src/a.py"
    target.unlink()
    if kind == "link":
        target.symlink_to("../other.txt")
    else:
        target.mkdir()
    edited = read_tree(project.root)
    for force in (False, True):
        with pytest.raises(ApplyError, match=r"src/a\.py is no longer a regular file: move it away"):
            undo(project, "one", force=force)
    assert read_tree(project.root) == edited


def cut_layer(snapshot: Path) -> None:
    layer = snapshot / "changes-1.json"
    layer.write_bytes(layer.read_bytes()[:-40])


def newer_layer(snapshot: Path) -> None:
    layer = snapshot / "changes-1.json"
    layer.write_bytes(layer.read_bytes().replace(b'"format": 1', b'"format": 2'))


def damage_original(snapshot: Path) -> None:
    original = max(snapshot.glob("originals/*"), key=lambda path: path.stat().st_size)
    original.write_bytes(b"!" + original.read_bytes()[1:])


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "no folder": (shutil.rmtree, "there is no snapshot in "),
    "empty folder": (lambda path: (shutil.rmtree(path), path.mkdir()), "there is no snapshot in "),
    "no record": (lambda path: (path / "changes-1.json").unlink(), "a changes-N.json is missing"),
    "no later record": (lambda path: (path / "changes-2.json").unlink(), "a changes-N.json is missing"),
    "cut record": (cut_layer, "is damaged, nothing was changed: it is not whole"),
    "empty record": (lambda path: (path / "changes-1.json").write_bytes(b""), "it is not whole"),
    "newer record": (newer_layer, "it has format 2, this version reads 1"),
    "no originals": (lambda path: shutil.rmtree(path / "originals"), "no readable original of "),
    "damaged original": (damage_original, "original of src/b.py is damaged"),
    "cut original": (lambda path: [file.write_bytes(b"") for file in path.glob("originals/*")], "is damaged"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_snapshot_is_an_error_and_never_an_empty_undo(project: Project, name: str) -> None:
    apply(project, NEW_FILES)
    apply(project, {"src/a.py": b"a = 3\n"})
    apply(project, {"src/a.py": b"a = 4\n"})
    after = read_tree(project.root)
    spoil, words = BAD[name]
    spoil(run_folder(project, "one"))
    for force in (False, True):
        with pytest.raises(ApplyError, match=words):
            undo(project, "one", force=force)
    assert read_tree(project.root) == after


def test_the_snapshot_is_for_nobody_else(project: Project) -> None:
    apply_changes(verified(project.root, NEW_FILES), project, project.root / SNAPSHOT)
    snapshot = project.root / SNAPSHOT
    files = [path for path in snapshot.rglob("*") if path.is_file()]
    assert len(files) > 10
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert stat.S_IMODE(snapshot.stat().st_mode) == 0o700


def test_a_run_is_rolled_back_into_its_own_snapshot(project: Project) -> None:
    before = read_tree(project.root)
    apply(project, NEW_FILES)
    apply(project, {"src/a.py": b"a = 3\n", "gone/one.txt": b"again\n", "made/x.txt": None})
    undo(project, "one", to="one")
    assert read_tree(project.root) == before
    assert undo(project, "one") == []
    assert read_tree(project.root) == before
