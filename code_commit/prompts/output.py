"""A build's output in a prompt: without most of the lines that only say what passed, and within its limit."""

import sys
from functools import lru_cache
from itertools import groupby
from pathlib import Path

from code_commit.errors import LogError
from code_commit.files import read_ends
from code_commit.outputs import find_quiet
from code_commit.settings import Settings
from code_commit.terminal import render

# bytes that are read of each end: progress bars and colours shrink to less than a quarter, tests that pass to far less
_RAW_BYTES_PER_LIMIT, _LEAST_READ = 4, 1_000_000
_LEAST = 3  # lines left out in one place
_LEAST_KNOWN = 10  # where some may be no more than known


def read_build_output(log_file: Path, settings: Settings, shown_name: str, before: str = "") -> str:
    """Return a build log as a terminal would finally show it, without colours; of one of which a prompt would show more
    than `build_output_limit` bytes the first and last lines, and one between them that names the whole log. Raises
    LogError.
    """
    limit, layout = settings.build_output_limit, settings.prompt_layout
    window = max(_RAW_BYTES_PER_LIMIT * limit, _LEAST_READ) if limit else sys.maxsize
    try:
        ends = read_ends(log_file, window, window)
    except OSError as error:
        raise LogError(log_file, error) from error
    whole, unread = [render(ends.head), render(ends.tail)], ends.between
    head, tail = (shown_output(end, layout, before) for end in whole)
    text = head + tail
    if not unread and (not limit or len(text.encode()) <= limit):
        return "".join(whole)
    first = (head if unread else text).encode()[: limit // 2].decode("utf-8", "ignore")
    last = text.encode()[-limit // 2 :].decode("utf-8", "ignore")
    first = first[: first.rfind("\n") + 1] or first
    last = last[last.find("\n") + 1 :] or last
    missing = len(text.encode()) - len(first.encode()) - len(last.encode()) + unread
    least = "" if [head, tail] == whole else "at least "
    gap = f"{least}{missing:,} bytes of the output are left out here; all of it is in {shown_name}"
    return f"{first}[... {gap} ...]\n{last}"


def shown_output(output: str, layout: str, before: str = "") -> str:
    """Return an output as the prompts of a layout show it: whole in that of the specification.

    `before` is the output of a build of the same project that passed.
    """
    return output if layout == "spec" else _without_passed(output, before)


@lru_cache(maxsize=4)
def _without_passed(output: str, before: str) -> str:
    lines, known = output.split("\n"), before.strip()
    pieces, least = list[str](), _LEAST_KNOWN if known else _LEAST
    why = "that only say what passed" + (", or that build.sh also printed when it passed before," if known else "")
    for is_quiet, numbers in groupby(range(len(lines)), key=find_quiet(lines, before).__getitem__):
        run = [lines[number] for number in numbers]
        if is_quiet and len(run) > least:
            run[:-1] = [f"[... {len(run) - 1:,} lines {why} are left out here ...]"]
        pieces += run
    return "\n".join(pieces)
