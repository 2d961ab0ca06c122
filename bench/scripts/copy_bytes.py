"""Copy a file so many times, read and written, and print what that took.

python copy_bytes.py FROM TO TIMES
"""

import sys
from pathlib import Path

from timed_part import timed_part


def main() -> None:
    """Copy."""
    source, target, times = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    with timed_part():
        for _ in range(times):
            target.write_bytes(source.read_bytes())


if __name__ == "__main__":
    main()
