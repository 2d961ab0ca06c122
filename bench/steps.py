"""All that the benchmarks know of the insides of code-commit: steps that are measured alone, with its interpreter.

    python -P bench/steps.py STEP FILE

The last line that a step prints is `wall cpu peak`: seconds, those of children included, and bytes where it counts
them. What comes before, imports and patterns above all, does not count.
"""

import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import Parameter, signature
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from typing import Any

KEY = "sk-bench-Vq3xT8mZr1LwYc7KpD5nHs2JbGf9Ae6U"
PIECE = 1 << 18  # bytes that a run reads from a build at a time


def parse(path: str) -> None:
    """Parse a response."""
    from code_commit.parse import parse_response

    text = Path(path).read_text("utf-8")
    with _timed():
        parse_response(text)


def copy(path: str) -> None:
    """Copy its bytes."""
    data = Path(path).read_bytes()
    with _timed():
        bytearray(data)


def memory_of_parse(path: str) -> None:
    """Parse a response, and count what that takes beside it."""
    from code_commit.parse import parse_response

    text = Path(path).read_text("utf-8")
    tracemalloc.start()
    parse_response(text)
    print(0, 0, tracemalloc.get_traced_memory()[1])


def most_tokens(path: str) -> None:
    """Count the tokens that a prompt has at most; the number stands for the bytes."""
    from code_commit.llm.vendor import most_tokens

    text = Path(path).read_text("utf-8")
    wall, cpu = time.perf_counter(), _cpu_seconds()
    most = most_tokens(text)
    print(f"\n{time.perf_counter() - wall} {_cpu_seconds() - cpu} {most}", flush=True)


def redact(path: str) -> None:
    """Censor a build's output as a run does, in pieces."""
    from code_commit.redaction import Redactor

    data = Path(path).read_bytes()
    redactor = Redactor([KEY])
    redactor.redact(data[: 2 * PIECE])  # it imports what it needs for much
    stream = redactor.stream(lambda _: None)
    with _timed():
        for start in range(0, len(data), PIECE):
            stream.write(data[start : start + PIECE])
        stream.close()


def apply(path: str) -> None:
    """Verify and apply a response in the current folder; the snapshot goes where a run's goes."""
    from code_commit.apply.transaction import apply_changes
    from code_commit.parse import parse_response
    from code_commit.project import find_project
    from code_commit.redaction import Redactor
    from code_commit.settings import Settings
    from code_commit.verify import capture_rules, verify_changes

    project = find_project()
    changes = parse_response(Path(path).read_text("utf-8"))
    snapshot = project.logs / "a-run" / "snapshot"
    snapshot.parent.mkdir(parents=True)
    known = {"changes": changes, "project": project, "settings": Settings(), "redactor": Redactor([KEY])}
    with _timed():
        known["rules"] = _called(capture_rules, known)
        apply_changes(_called(verify_changes, known), project, snapshot)


def _called(function: Callable[..., Any], known: dict[str, Any]) -> Any:
    """Call a function of any revision with what it asks for, and None for what nobody here has."""
    names = [name for name, asked in signature(function).parameters.items() if asked.default is Parameter.empty]
    return function(*(known.get(name) for name in names))


def _cpu_seconds() -> float:
    return sum(used.ru_utime + used.ru_stime for used in map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN)))


def _compile_patterns() -> None:
    """Compile the patterns of what is imported, as revisions before `code_commit.regex` do in the import."""
    modules = [module for name, module in sys.modules.items() if name.startswith("code_commit")]
    for pattern in [value for module in modules for value in vars(module).values()]:
        if type(pattern).__module__ == "code_commit.regex":
            _ = pattern.flags


@contextmanager
def _timed() -> Iterator[None]:
    _compile_patterns()
    wall, cpu = time.perf_counter(), _cpu_seconds()
    yield
    print(f"\n{time.perf_counter() - wall} {_cpu_seconds() - cpu} 0", flush=True)


if __name__ == "__main__":
    {
        "most_tokens": most_tokens,
        "parse": parse,
        "copy": copy,
        "memory_of_parse": memory_of_parse,
        "redact": redact,
        "apply": apply,
    }[sys.argv[1]](sys.argv[2])
