"""What a power cut needs: in the trace of an apply every byte and every name is synced before the next step builds on it."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from apply_driver import MANY_FILES, make_tree
from kill_points import Call, Driver, changing, driver_environment, needs_strace

pytest_plugins = ["apply_fixtures"]

pytestmark = needs_strace

HANDLE = r"(?:AT_FDCWD|\d+)<([^>]*)>"
WRITE = re.compile(rf"(?:write|pwrite64|ftruncate|fchmod|fchown|fsetxattr)\({HANDLE}")
SYNC = re.compile(rf"(?:fsync|fdatasync)\({HANDLE}")
WHOLE_SYNC = re.compile(rf"syncfs\({HANDLE}")
OPEN = re.compile(rf'openat\({HANDLE}, "([^"]*)"')
MOVE = re.compile(rf'(?:renameat2?|linkat)\({HANDLE}, "([^"]*)", {HANDLE}, "([^"]*)"')
REMOVE = re.compile(rf'(?:unlinkat|mkdirat)\({HANDLE}, "([^"]*)"')
PLAIN = re.compile(r'(?:mkdir|rmdir|unlink|rename|chmod)\("([^"]*)"')


class Disk:
    """Which files have bytes, and which folders names, that a power cut could still take."""

    def __init__(self) -> None:
        self.bytes: set[str] = set()
        self.names: set[str] = set()
        self.touched: set[str] = set()

    def see(self, call: Call) -> None:
        if match := WRITE.match(call.text):
            self._write(match[1])
        elif match := SYNC.match(call.text):
            self.bytes.discard(match[1])
            self.names.discard(match[1])
        elif WHOLE_SYNC.match(call.text):
            self.bytes.clear()
            self.names.clear()
        elif match := OPEN.match(call.text):
            self._name(path_of(match[1], match[2]))
        elif match := MOVE.match(call.text):
            source, target = path_of(match[1], match[2]), path_of(match[3], match[4])
            if call.name.startswith("rename"):
                assert source not in self.bytes, f"not synced before it was moved: {call.text}"
                self._name(source)
            self._name(target)
        elif match := REMOVE.match(call.text):
            self._name(path_of(match[1], match[2]))
        elif match := PLAIN.match(call.text):
            self._name(match[1])
        else:
            raise AssertionError(call)

    def _write(self, path: str) -> None:
        self.touched.add(path)
        (self.names if Path(path).is_dir() else self.bytes).add(path)

    def _name(self, path: str) -> None:
        self.touched.add(path)
        self.names.add(path.rpartition("/")[0])


def path_of(folder: str, name: str) -> str:
    return name if name.startswith("/") else f"{folder}/{name}"


@pytest.mark.parametrize(("what", "moved"), [("apply few", 3), ("apply", 17), ("apply many", len(MANY_FILES))])
def test_everything_is_synced_before_the_next_step_builds_on_it(
    what: str, moved: int, tmp_path: Path, driver: Driver, say
) -> None:
    root = tmp_path / "tree"
    make_tree(root)
    calls = changing(driver.trace(tmp_path / "trace", what, root))
    assert any(call.name == "syncfs" for call in calls) == (what != "apply few")
    disk = Disk()
    checked = 0
    for call in calls:
        if '"new-' in call.text and call.name == "renameat":
            # before the first change of the tree: the journal, the originals and the staged files are on the disk
            config = {name for name in disk.names | disk.bytes if "/agent-config/" in name and name != txn(root)}
            assert not config - {f"{root}/agent-config/.lock"}, config
            checked += 1
        if '"journal.json"' in call.text and '"settled.json"' in call.text:
            assert not disk.bytes - {f"{root}/agent-config/.lock"}
            waiting = {name for name in disk.names if Path(name).is_dir()} - {txn(root), f"{root}/agent-config"}
            assert not waiting, waiting
            checked += 1
        disk.see(call)
    assert checked == moved + 1
    outside = {path for path in disk.touched if not path.startswith(f"{root}/")}
    assert not outside
    say(
        f"{checked} checks over {len(calls)} calls ({what}): nothing moved or committed before it was synced, 0 writes outside"
    )


def txn(root: Path) -> str:
    return f"{root}/agent-config/.txn"


def can_use_loop_devices() -> bool:
    found = shutil.which("mkfs.ext4") and shutil.which("losetup")
    return bool(found) and subprocess.run(["losetup", "-f"], capture_output=True, check=False).returncode == 0


@pytest.mark.root("mount")
@pytest.mark.skipif(not can_use_loop_devices(), reason="an ext4 in a file cannot be mounted here")
@pytest.mark.parametrize("what", ["apply few", "apply"])
def test_power_cuts_on_a_real_file_system(what: str, tmp_path: Path, whole, say) -> None:
    script = Path(__file__).with_name("power_cut.py")
    command = ["unshare", "-m", sys.executable, "-B", str(script), str(tmp_path), what, "0" if whole else "8"]
    done = subprocess.run(command, env=driver_environment(), stdout=subprocess.PIPE, check=True)
    result = json.loads(done.stdout)
    assert set(result["outcomes"]) == {"old", "new"}, result
    say(f"power cut at {sum(result['outcomes'].values())} of {result['calls']} calls ({what}): {result['outcomes']}")
