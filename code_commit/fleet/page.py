"""OUT/index.html: every task of a fleet with its result, and the page of each task's own run."""

import shlex
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from code_commit.api import compare, render_page, render_template
from code_commit.commands.results import Result
from code_commit.errors import LogError
from code_commit.exchange import Cost
from code_commit.files import read_regular_file
from code_commit.fleet.land import load_landings
from code_commit.fleet.patches import diff_of
from code_commit.fleet.results import PAGE, FleetTotals, write_own
from code_commit.runs.record import load_run_record
from code_commit.version import __version__


def write_pages(out: Path, tasks: Iterable[str], results: Mapping[str, Result], spent: Cost | None = None) -> None:
    """Write the page of these tasks and results; `spent` is the cost of all starts. Raises LogError."""
    totals = FleetTotals(len({*tasks, *results}))
    alike: defaultdict[str, list[Result]] = defaultdict(list)
    for _, result in sorted(results.items()):
        totals.add(result)
        if result.is_green and result.patch:
            alike[result.patch].append(result)
    if spent:
        totals.set_cost(spent)
    labels = compare(results.values())
    values = {
        "totals": totals,
        "words": dict(Counter(result.word for result in results.values()).most_common()),
        "alike": {patch: (len({each.repository for each in same}), same[0].id) for patch, same in alike.items()},
        "results": sorted(
            results.values(), key=lambda result: (result.is_green, -len(alike[result.patch]), result.patch, result.id)
        ),
        "landings": load_landings(out, results),
        "land": f"code-commit fleet --land {shlex.quote(str(out))}",
        "rows": labels.rows if any(result.is_compared for result in results.values()) else [],
        "pages": {task for task in results if write_own_page(out / task)},
        "page": PAGE,
        "version": __version__,
    }
    write_own(out / PAGE, render_template(__package__, values))


class Pages:
    """Keeps the page of a fleet up to date for a twentieth of the time at most. `results` are those that count."""

    def __init__(self, out: Path, tasks: Collection[str], results: dict[str, Result]) -> None:
        self.out, self.results = out, results
        self.spent: Cost | None = None
        self.is_due = True
        self._tasks, self._next = tasks, 0.0

    def write(self) -> None:
        write_pages(self.out, self._tasks, self.results, self.spent)

    def catch_up(self) -> None:
        """Write what is new, if its time has come."""
        begun = time.monotonic()
        if self.is_due and begun >= self._next:
            self.is_due = False
            with suppress(LogError):  # what could not be stored is told by its own error, and the last page by this one
                self.write()
            self._next = time.monotonic() + 20 * (time.monotonic() - begun)


def write_own_page(folder: Path) -> bool:
    """Write the page of a task's run, unless it is there. Return whether it is: a run that never began has none.

    The worker has censored what the log holds. A run that has no end was ended with its worker. Raises LogError.
    """
    page, patch = folder / PAGE, folder / "changes.patch"
    if folder.is_symlink():
        return False
    if page.is_file() and not page.is_symlink():
        return True
    try:
        record = load_run_record(read_regular_file(folder / "run.json"))
    except (FileNotFoundError, ValueError):
        return False
    changes = diff_of(read_regular_file(patch)) if patch.is_file() and not patch.is_symlink() else b""
    write_own(page, render_page(record, folder, folder=folder / "log", patch=changes))
    return True
