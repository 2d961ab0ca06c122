"""Root's build keeps the devices of the machine, but for those that lead around the mounts of its sandbox."""

import os
import stat
from pathlib import Path

import pytest

from code_commit.build.devices import device_mounts

DEVICES = {  # the number of each, its place among the kernel's devices, and whether it is kept
    "hwrng": (10, 183, "virtual/misc/hw_random", True),
    "tty0": (4, 0, "virtual/tty/tty0", True),
    "tty7": (4, 7, "virtual/tty/tty7", False),
    "ttyS0": (4, 64, "pnp0/00:00/tty/ttyS0", True),
    "vcsa1": (7, 129, "virtual/vc/vcsa1", False),
    "dri/card0": (226, 0, "pci0/vga/drm/card0", True),
    "nvidia0": (195, 0, None, True),
    "bus/usb/001/001": (189, 0, "pci0/usb1/1-1", True),
    "bus/usb/001/002": (189, 1, "pci0/usb1/1-2", False),
    "sg0": (21, 0, "pci0/ata1/0:0:0:0/scsi_generic/sg0", False),
    "sg1": (21, 1, "pci0/ata1/1:0:0:0/scsi_generic/sg1", True),
    "nvme0": (240, 0, "pci0/nvme/nvme0", False),
    "mem": (1, 1, "virtual/mem/mem", False),
    "vfio/7": (241, 7, "virtual/vfio/7", False),
    "loop-control": (10, 237, "virtual/misc/loop-control", False),
    "null": (1, 3, "virtual/mem/null", False),
}
DISKS = ("pci0/ata1/0:0:0:0/block/sda", "pci0/nvme/nvme0/nvme0n1", "pci0/usb1/1-2/1-2:1.0/host3/block/sdb")


@pytest.mark.root
def test_a_device_is_kept_unless_it_reaches_a_disk_or_memory(tmp_path: Path):
    folder, sysfs = tmp_path / "dev", tmp_path / "sys"
    for name in ("class/block", "dev/char"):
        (sysfs / name).mkdir(parents=True)
    for place in DISKS:
        (sysfs / "devices" / place).mkdir(parents=True)
        (sysfs / "class/block" / Path(place).name).symlink_to(sysfs / "devices" / place)
    for name, (major, minor, place, _) in DEVICES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        os.mknod(folder / name, stat.S_IFCHR | 0o600, os.makedev(major, minor))
        if place:
            at = sysfs / "devices" / place
            at.mkdir(parents=True, exist_ok=True)
            if len(at.parents[1].relative_to(sysfs).parts) > 2 and "usb" not in place:
                (at / "device").symlink_to(at.parents[1])
            (sysfs / f"dev/char/{major}:{minor}").symlink_to(at)
    os.mknod(folder / "sda", stat.S_IFBLK | 0o600, os.makedev(8, 0))
    (folder / "rtc").symlink_to("rtc0")

    words = list(device_mounts(folder, sysfs))
    kept = {"shm", *(name for name, (*_, is_kept) in DEVICES.items() if is_kept)}
    assert set(words) == {"--dev-bind-try", "--symlink", "rtc0", str(folder / "rtc"), *(str(folder / n) for n in kept)}
    assert not any(Path(word).is_block_device() for word in device_mounts())
