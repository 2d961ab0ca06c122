"""A log that came from elsewhere, or that a build changed: `undo`, `resume` and the repair write what answers may."""

import json
from hashlib import sha256
from pathlib import Path

import pytest
from command import Run, every_third, git, recorded, the_log, tree

from code_commit.apply.journal import DamagedJournalError, decode

EVIL = b"[core]\n\tfsmonitor = touch ran\n"
STATE = {"sha256": sha256(EVIL).hexdigest(), "size": len(EVIL), "mode": 0o755, "uid": 0, "gid": 0}
PATHS = {
    "git's configuration": ".git/config",
    "in other letters": ".GIT/config",
    "a hook": ".git/hooks/post-commit",
    "the build": "build.sh",
    "the settings": "agent-config/config.toml",
    "outside": "../outside.txt",
    "absolute": "/tmp/outside.txt",
    "inside and out": "sub/../../outside.txt",
    "NUL": "a\0b",
    "half a pair": "a\ud800b",
    "a long name": "n" * 300,
    "a long path": "n/" * 3000 + "n",
    "a link": "link.txt",
    "through a link": "link/outside.txt",
    "nothing": "",
}


@pytest.fixture
def root(project_folder: Path) -> Path:
    outside = project_folder.parent / "linked"
    outside.mkdir()
    (outside / "outside.txt").write_text("of somebody else\n")
    (project_folder / "link").symlink_to(outside)
    (project_folder / "link.txt").symlink_to(outside / "outside.txt")
    git(project_folder, "add", "-A")
    git(project_folder, "commit", "-qm", "links")
    return project_folder


def everything(root: Path) -> dict[str, tuple[int, bytes]]:
    """Return all that lies in the project, git's folder too, and beside it; but for the log, the lock and the journal."""
    own = ("agent-config/logs", "agent-config/.lock", "agent-config/.txn", "agent-config/recorded")
    files = {str(path.relative_to(root.parent)): path for path in root.parent.rglob("*") if not path.is_symlink()}
    return {
        name: (path.stat().st_mode, path.read_bytes() if path.is_file() else b"")
        for name, path in files.items()
        if not any(f"project/{each}" in name for each in own) and path != root / "agent-config"
    }


def journal(path: str, layer: str = "", **more: object) -> str:
    step = {"path": path, "before": STATE, "after": None, "area": 0}
    body = {"files": [step], "made": [], "removed": [], "areas": [], "layer": layer} | more
    return json.dumps({"format": 1, "body": body})


def tampered_run(root: Path, run_code_commit: Run, path: str, **more: object) -> Path:
    """Leave the log of an interrupted run whose snapshot names the path; return its folder."""
    assert run_code_commit(root, *recorded(root, "^^^new.txt\nx\n^^^end\n")).returncode == 3
    (root / "new.txt").unlink()
    log = the_log(root)
    (log / "snapshot/originals" / STATE["sha256"]).write_bytes(EVIL)
    (log / "snapshot/changes-1.json").write_text(journal(path, **more))
    return log


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_a_snapshot_of_protected_files_is_refused(path: str, root: Path, run_code_commit: Run, *, whole: bool):
    log = tampered_run(root, run_code_commit, path)
    before = everything(root)
    commands = [["undo"], ["undo", "--force"], ["resume"]]
    for command in commands if whole or path == ".git/config" else commands[1:2]:
        done = run_code_commit(root, *command)
        assert done.returncode == 2, done.stderr
        assert everything(root) == before
        assert [log] == list((root / "agent-config/logs").iterdir()), "what is refused is no run"


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_a_journal_that_names_what_no_answer_may_change_is_refused(
    path: str, root: Path, run_code_commit: Run, *, whole: bool
):
    folder = root / "agent-config/.txn"
    folder.mkdir()
    (folder / "old-0").write_bytes(EVIL)
    (folder / "journal.json").write_text(journal(path, "agent-config/logs/one/snapshot/changes-1.json"))
    before = everything(root)
    commands = [["undo"], ["resume"], ["rollup"], recorded(root, "^^^ok.txt\nok\n^^^end\n")]
    for command in commands if whole or path == ".git/config" else commands[:1]:
        done = run_code_commit(root, *command)
        assert done.returncode == 2, done.stderr
        assert "nothing was changed" in done.stderr
        assert everything(root) == before


FOLDERS = {
    "a folder made": {"made": [{"path": ".git/hooks", "mode": 0o777, "uid": 0, "gid": 0}]},
    "a folder removed": {"removed": [{"path": "link", "mode": 0o777, "uid": 0, "gid": 0}]},
    "a folder outside": {"made": [{"path": "../linked", "mode": 0o777, "uid": 0, "gid": 0}]},
    "an area": {"areas": ["../.code-commit-txn"]},
}


@pytest.mark.parametrize("more", FOLDERS.values(), ids=FOLDERS)
def test_folders_are_checked_too(more: dict[str, object], root: Path, run_code_commit: Run):
    tampered_run(root, run_code_commit, "new.txt", **more)
    before = everything(root)
    done = run_code_commit(root, "undo", "--force")
    assert (done.returncode, everything(root) == before) == (2, True), done.stderr


VALUES = {
    "no path": {"files": [{"path": 7, "before": STATE, "after": None, "area": 0}]},
    "another name": {
        "files": [{"path": "a", "before": {**STATE, "sha256": "../" * 30}, "after": None, "area": 0}],
    },
    "half a mode": {"files": [{"path": "a", "before": {**STATE, "mode": 0.5}, "after": None, "area": 0}]},
    "a huge owner": {"files": [{"path": "a", "before": {**STATE, "uid": 10**30}, "after": None, "area": 0}]},
    "a mode of no file": {"files": [{"path": "a", "before": None, "after": {**STATE, "mode": 0o10000}, "area": 0}]},
    "a number below none": {"files": [{"path": "a", "before": {**STATE, "size": -2}, "after": None, "area": 0}]},
    "a word for a number": {"made": [{"path": "a", "mode": "x", "uid": 0, "gid": 0}]},
    "a huge owner of a folder": {"removed": [{"path": "a", "mode": 0o755, "uid": 0, "gid": 2**32}]},
    "an attribute that is not kept": {
        "files": [{"path": "a", "before": {**STATE, "attributes": [["trusted.x", ""]]}, "after": None, "area": 0}]
    },
    "no such area": {"files": [{"path": "a", "before": STATE, "after": None, "area": 9}]},
    "an area of no name": {"areas": [None]},
    "no layer": {"layer": ["x"]},
}


@pytest.mark.parametrize("more", VALUES.values(), ids=VALUES)
def test_a_journal_with_values_of_another_kind_is_not_read(more: dict[str, object]):
    assert decode(journal("new.txt", areas=[""]).encode()).files
    with pytest.raises(DamagedJournalError):
        decode(journal("new.txt", **more).encode())


@pytest.mark.slow
@pytest.mark.parametrize("more", every_third(VALUES))
def test_values_of_another_kind_are_damage(more: dict[str, object], root: Path, run_code_commit: Run):
    tampered_run(root, run_code_commit, "new.txt", **more)
    before = tree(root)
    for command in ("undo", "diff"):
        done = run_code_commit(root, command)
        assert (done.returncode, "changes-1.json is damaged, nothing was changed" in done.stderr) == (5, True)
    assert tree(root) == before


@pytest.mark.parametrize("layer", ["../changes-1.json", "agent-config/logs/../../changes-1.json", "a\0/changes-1.json"])
def test_a_layer_elsewhere_is_not_removed(layer: str, root: Path, run_code_commit: Run):
    for folder in (root, root.parent):
        (folder / "changes-1.json").write_text("of somebody else\n")
    (root / "agent-config/.txn").mkdir()
    (root / "agent-config/.txn/journal.json").write_text(journal("new.txt", layer, files=[]))
    before = everything(root)
    done = run_code_commit(root, "undo")
    assert (done.returncode, everything(root) == before) == (5, True), done.stderr
    assert "its journal is damaged: it names something else as its file in the snapshot" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("undoes", ["itself", "..", "../../x", "a\0b", "x", "2999-01-01-00-00-00-committing-code"])
def test_an_undo_that_says_it_undid_no_earlier_run_is_refused(undoes: str, root: Path, run_code_commit: Run):
    answer = "^^^new.txt\nx\n^^^end\n"
    assert run_code_commit(root, "apply", "-", stdin=answer).returncode == 0
    assert run_code_commit(root, "undo").returncode == 0
    _, log = sorted((root / "agent-config/logs").iterdir())
    record = json.loads((log / "run.json").read_text())
    record["undoes"] = log.name if undoes == "itself" else undoes
    (log / "run.json").write_text(json.dumps(record))
    before = everything(root)
    done = run_code_commit(root, "undo", log.name, timeout=20)
    assert (done.returncode, everything(root) == before) == (2, True), done.stderr
    assert "which is no earlier run" in done.stderr


@pytest.mark.parametrize(
    "response", ["^^^agent-config/query.txt\nx\n^^^end\n", "^^^../x\n^^^end\n", "no block", "\xff", None]
)
def test_no_answer_in_a_log_shows_the_llm_what_none_may_change(response, root: Path, run_code_commit: Run):
    wrong = "^^^ok.txt\nwrong\n^^^end\n"
    assert run_code_commit(root, *recorded(root, wrong)).returncode == 3
    recorded(root, wrong, "^^^ok.txt\nok\n^^^end\n")
    (the_log(root) / "1-response.txt").unlink()
    if response:
        (the_log(root) / "1-response.txt").write_bytes(response.encode("latin-1"))
    done = run_code_commit(root, "resume")
    assert (done.returncode, (root / "ok.txt").read_text()) == (2, "wrong\n"), done.stderr
