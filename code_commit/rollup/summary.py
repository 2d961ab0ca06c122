"""What became of each file: in the rollup with its size, or left out for a reason."""

from dataclasses import dataclass, field

BINARY = "binary"
CHANGED = "changed while being read"
DELETED = "deleted"
EXCLUDED = "excluded"
KEY_FILE = "key file"
LARGE_LOCK_FILE = "large lock file"
LINK = "link"
NOT_UTF8 = "not UTF-8"
ODD_NAME = "unprintable name"
OTHER_REPOSITORY = "submodule or other repository"
OUTSIDE = "outside of this folder"
REVEALS_KEY = "holds an API key"
SPECIAL = "no regular file"
UNREADABLE = "unreadable"


LARGEST = 10


@dataclass(slots=True)
class Rollup:
    """The rollup in numbers: `bytes` and `characters` are those of the whole."""

    files: int = 0
    bytes: int = 0
    characters: int = 0
    largest: list[tuple[int, str]] = field(default_factory=list)
    """The bytes and names of the largest files, the largest first."""
    left_out: dict[str, dict[str, str]] = field(default_factory=dict)
    """For each reason the files, and a detail where there is one."""

    def add(self, name: str, size: int, characters: int) -> None:
        self.files += 1
        self.characters += characters
        if len(self.largest) < LARGEST or size > self.largest[-1][0]:
            self.largest = sorted([*self.largest, (size, name)], key=lambda file: -file[0])[:LARGEST]

    def leave_out(self, reason: str, name: str, detail: str = "") -> None:
        self.left_out.setdefault(reason, {})[name] = detail

    def left_out_line(self) -> str:
        """Return the reasons with their counts in one line, "" where nothing was left out."""
        counts = [f"{reason} {len(names)}" for reason, names in sorted(self.left_out.items())]
        return f"left out: {', '.join(counts)}" if counts else ""
