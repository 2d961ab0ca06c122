"""A fleet's OUT for the tests, with one task of each kind and foreign text that is hostile."""

from pathlib import Path

from code_commit.commands.results import Result
from code_commit.fleet.page import write_pages
from code_commit.fleet.results import TaskOutcome, load_results, results_folder, store_result

EVIL = "<script>window.hacked=1</script>"
IMAGE = '"><img src=x onerror="window.hacked=2">'
RECORD = b"""{"version": "0", "run": "2026-11-22-10-00-00-committing-code", "command": "run", "root": "/worker",
"started": "2026-11-22T10:00:00.000Z", "log_dir": "l", "pid": 1, "status": "success", "exit_code": 0,
"attempts": [{"number": 1, "kind": "initial", "verdict": "applied"}]}"""
PATCH = b"diff --git a/new.txt b/new.txt\nnew file mode 100644\n--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+of the patch\n"

RESULTS = [
    Result("a", "d", "success", 0, attempts=2, cost_usd=0.25, seconds=70, query=f"Do {EVIL}", repository=f"/{IMAGE}"),
    Result("b", "d", "build_failed", 1, attempts=4, cost_usd=1.5, seconds=9.5, message=f"no {IMAGE}\nmore"),
    Result("c", "d", "not_set_up", 2, message="it cannot be cloned"),
    Result("d", "d", "not_set_up", 2),
    Result("e", "d", "success", 0, attempts=1, cost_usd=0.5, seconds=8),
]


def store(out: Path, *parts: Result | bytes) -> None:
    """Land an outcome of these parts beside the results that are in OUT."""
    store_result(out, TaskOutcome(*parts), load_results(out))


def write_fleet(out: Path, tasks: str = "abcde") -> Path:
    """Land the results in OUT, of which b's run was killed with its worker; write the pages and return OUT."""
    with results_folder(out):
        for result in RESULTS:
            record = RECORD if result.is_green else RECORD.replace(b'"success"', b'"running"')
            store(out, result, record if result.attempts else b"", PATCH if result.is_green else b"", b"")
        write_pages(out, tasks, load_results(out))
    return out
