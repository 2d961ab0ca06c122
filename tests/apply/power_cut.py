"""Cut the power at calls of an apply, on a real ext4 in a file, and repair what the disk held. Needs root.

    unshare -m python power_cut.py FOLDER WHAT POINTS     WHAT: as the driver's; POINTS: how many calls, 0 for all

ext4 is mounted so that it writes as late as it may. At each point the driver is killed, then another file is synced,
which makes ext4 commit all names but not all bytes; a copy of the backing file is what a power cut leaves. It is
mounted and repaired. Prints one JSON object.
"""

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

from apply_driver import make_tree, read_tree
from kill_points import Driver, changing, sample

from code_commit.apply.recover import recover
from code_commit.project import Project

SIZE = 12 << 20


class Disk:
    def __init__(self, image: Path, mounted: Path) -> None:
        self.image = image
        self.mounted = mounted
        mounted.mkdir(exist_ok=True)

    def format(self) -> None:
        with self.image.open("wb") as image:
            image.truncate(SIZE)
        subprocess.run(["mkfs.ext4", "-q", "-F", "-O", "^metadata_csum_seed", self.image], check=True)

    def mount(self) -> None:
        options = "loop,commit=600,noauto_da_alloc,data=ordered"
        subprocess.run(["mount", "-o", options, self.image, self.mounted], check=True)

    def unmount(self) -> None:
        subprocess.run(["umount", self.mounted], check=True)


def main() -> None:
    folder, what, points = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    fresh = Disk(folder / "fresh.img", folder / "fresh")
    fresh.format()
    fresh.mount()
    make_tree(fresh.mounted / "tree")
    old = read_tree(fresh.mounted / "tree")
    fresh.unmount()
    driver = Driver()
    work = Disk(folder / "work.img", folder / "work")
    after = Disk(folder / "after.img", folder / "after")
    shutil.copyfile(fresh.image, work.image)
    work.mount()
    calls = changing(driver.trace(folder / "trace", what, work.mounted / "tree"))
    new = read_tree(work.mounted / "tree")
    work.unmount()
    outcomes: Counter[str] = Counter()
    for call in sample(calls, points or len(calls), whole=not points):
        shutil.copyfile(fresh.image, work.image)
        work.mount()
        driver.inject(call, "signal=SIGKILL", what, work.mounted / "tree")
        other = work.mounted / "other"
        other.write_bytes(b"x")
        subprocess.run(["sync", other], check=True)
        shutil.copyfile(work.image, after.image)
        work.unmount()
        after.mount()
        recover(Project(after.mounted / "tree"))
        tree = read_tree(after.mounted / "tree")
        outcomes["old" if tree == old else "new" if tree == new else f"torn at {call.text}"] += 1
        after.unmount()
    driver.close()
    sys.stdout.write(json.dumps({"calls": len(calls), "outcomes": outcomes}))


if __name__ == "__main__":
    main()
