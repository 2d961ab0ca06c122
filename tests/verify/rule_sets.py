"""Random ignore rules with the paths to ask about, and git's answer from the other side: what `git ls-files` lists."""

import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

KINDS = ("plain", "usual", "all")
"""plain: names `*` `?` `!` `/` `**`; usual: brackets, escapes and blanks too; all: whatever a file can hold."""

_NAMES = ("a", "b", "c", "ab", "abc", "lib", "build", "x.py", "y.txt", "A", "Lib")
_ODD_NAMES = (
    "\u00e9",
    "\u65e5\u672c",
    "a b",
    "a ",
    "a\t",
    "[a]",
    "a]",
    "!a",
    "#a",
    "a*",
    "\\a",
    "^",
    "-",
    "b-c",
    "a\r",
    "\u00e0",
)
_BRACKETS = ("[ab]", "[!a]", "[a-c]", "[^b]", "[a-]", "x[.]py", "[0-9]", "[A-C]", "[abl]", "[a-cx-z]")
_ODD_PIECES = (
    *("[[:alpha:]]", "[[:upper:]b]", "[[:bad:]]", "[]a]", "[]-a]", "[!]a]", "[a", "[", "]", "[z-a]", "[a/]", "[\\]]"),
    *(
        "[\\-z]",
        "[a\\]",
        "[--0]",
        "[a-^]",
        "[+-9]",
        "[!-~]",
        "***",
        "a***b",
        "\\",
        "\\\\",
        "\\a",
        "\\*",
        "\\?",
        "\\[",
        "\\/",
        "?" * 2,
    ),
    *(
        "\u00e9",
        "?",
        "??",
        "???",
        "[\u00e9]",
        "[\u00e0-\u00ff]",
        "\t",
        "\x0b",
        "\x0c",
        "\x7f",
        "\u00a0",
        "\u2028",
        "\0",
        "\r",
    ),
)


@dataclass(frozen=True)
class RuleSet:
    """The .gitignore files of one folder tree (paths from its top) and the files that stand in it."""

    ignore_files: Mapping[str, bytes]
    paths: tuple[str, ...]


def random_rule_set(random: Random, kind: str) -> RuleSet:
    paths = _random_paths(random, kind)
    folders = sorted({folder for path in paths for folder in parents(path)})
    nested = [folder for folder in folders if folder and random.random() < 0.3]
    return RuleSet({folder: random_ignore_file(random, kind) for folder in ["", *nested[:3]]}, paths)


def _random_paths(random: Random, kind: str) -> tuple[str, ...]:
    names = [*_NAMES, *(_ODD_NAMES if kind == "all" else ("a b", "[a]", "!a", "#a") if kind == "usual" else ())]
    drawn = ("/".join(random.choice(names) for _ in range(random.choice((1, 2, 2, 3, 3, 4)))) for _ in range(10))
    return without_clashes(drawn)


def without_clashes(paths: Iterable[str]) -> tuple[str, ...]:
    """Leave out every path that an earlier one cannot stand beside: twice the same, or one the other's folder."""
    files: set[str] = set()
    folders: set[str] = set()
    for path in paths:
        above = set(parents(path)) - {""}
        if path not in folders and not above & files:
            files.add(path)
            folders |= above
    return tuple(sorted(files))


def parents(path: str) -> list[str]:
    """Return the folders that the path lies in, the top "" first."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[:depth]) for depth in range(len(parts) + 1)]


def random_ignore_file(random: Random, kind: str) -> bytes:
    lines = [_random_line(random, kind) for _ in range(random.randint(1, 5))]
    if kind == "all" and random.random() < 0.1:
        lines.insert(
            random.randint(0, len(lines)),
            random.choice(("", "#a", " ", "!", "/", "!/", "\\#a", "\\!a", "\\ ", "a\\ ", "# ")),
        )
    end = random.choice(("\n", "\r\n")) if kind == "all" else "\n"
    content = end.join(lines) + random.choice(("", end))
    bom = b"\xef\xbb\xbf" if kind == "all" and random.random() < 0.15 else b""
    return bom + content.encode()


def _random_line(random: Random, kind: str) -> str:
    pattern = "/".join(_random_segment(random, kind) for _ in range(random.choice((1, 1, 1, 2, 2, 3))))
    negation = "!" if random.random() < 0.3 else ""
    anchor = "/" if random.random() < 0.2 else ""
    folder = random.choice(("/", "/", "//" if kind == "all" else "/")) if random.random() < 0.25 else ""
    blanks = random.choice((" ", "  ", "\\ ", "\t")) if kind != "plain" and random.random() < 0.05 else ""
    return negation + anchor + pattern + folder + blanks


def _random_segment(random: Random, kind: str) -> str:
    roll = random.random()
    if roll < 0.45:
        return random.choice(_NAMES)
    if roll < 0.65:
        return random.choice(("*", "*", "?", "a*", "*b", "*.py", "*c*", "l?b", "?b", "a*c", "**a", "b**", "a**b"))
    if roll < 0.8 or kind == "plain":
        return "**"
    if roll < 0.93 or kind == "usual":
        return (
            random.choice(_BRACKETS) + random.choice(("", "", "*", "b"))
            if roll < 0.9
            else random.choice(("\\a", "\\#a", "\\*"))
        )
    return random.choice(_ODD_PIECES) + random.choice(("", "", "*", "a"))


def lay_out(sets: Mapping[str, RuleSet], root: Path) -> None:
    """Write the files of the rule sets, each in its folder; ignore files of an earlier layout are replaced."""
    for folder, rules in sets.items():
        for path in rules.paths:
            target = root / folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.touch()
        for place, content in rules.ignore_files.items():
            target = Path(root, folder, place, ".gitignore")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)


def git_lists_as_ignored(top: Path, git_dir: Path) -> set[str]:
    """Return the ignored files as `git ls-files --others --ignored` sees the tree."""
    command = ["git", f"--git-dir={git_dir}", f"--work-tree={top}"]
    listing = [*command, "ls-files", "-z", "--others", "--ignored", "--exclude-standard"]
    answer = subprocess.run(listing, cwd=top, capture_output=True, check=True)
    return {os.fsdecode(path) for path in answer.stdout.split(b"\0")[:-1]}
