"""What the benchmarks know of the insides of code-commit, all of it: steps that are measured alone.

    python -P bench/steps.py apply RESPONSE     verify and apply a saved response in the current folder
    python -P bench/steps.py capture            run build.sh in the current folder and log its output, redacted
    python -P bench/steps.py builds ROUNDS      run build.sh without a sandbox and in each, in turns

The first two print wall and CPU seconds, children included, as the last line of their output: what comes before the
step, imports above all, does not count. The third prints its seconds as JSON. They are processes of their own, because
each build forks the process, which costs the more the larger it is.
"""

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

KEY = "sk-bench-Vq3xT8mZr1LwYc7KpD5nHs2JbGf9Ae6U"
PIECE = 1 << 18  # bytes that a run reads from a build at a time
MODELS = (("openai", "gpt-6.2-sol"), ("anthropic", "claude-opus-5-5"), ("gemini", "gemini-4-argon"))


def apply(response: str) -> None:
    """Apply it; the snapshot goes where a run's goes."""
    from code_commit.apply import apply_changes
    from code_commit.parse import parse_response
    from code_commit.project import find_project
    from code_commit.redaction import Redactor
    from code_commit.settings import Settings
    from code_commit.verify import capture_rules, verify_changes

    project = find_project()
    changes = parse_response(Path(response).read_text("utf-8"))
    snapshot = project.logs / "a-run" / "snapshot"
    snapshot.parent.mkdir(parents=True)
    with _timed():
        rules = capture_rules(project, Settings(), None, Redactor([KEY]))
        apply_changes(verify_changes(changes, project, rules), project, snapshot)


def capture() -> None:
    """Build once, as a run does."""
    from code_commit.build import Builder
    from code_commit.job import Job
    from code_commit.project import find_project
    from code_commit.redaction import Redactor
    from code_commit.runs.log import open_run_log
    from code_commit.runs.progress import Progress
    from code_commit.settings import Settings
    from code_commit.verify import capture_rules
    from code_commit.workflow import build_project

    project, settings, redactor = find_project(), Settings(), Redactor([KEY])
    job = Job(
        project, settings, capture_rules(project, settings, None, redactor), (), dict(os.environ), Builder(project)
    )
    with open_run_log(project, "run", settings, redactor, Progress(redactor, quiet=True)) as log:
        with _timed():
            build = build_project(job, log, log.attempt(1))
        log.finish("success" if build.passed else "build_failed", 0)


def builds(rounds: str) -> None:
    """Print the seconds of each build by its sandbox; `skipped` says why a sandbox could not be had."""
    from code_commit.build import Builder, choose_sandbox
    from code_commit.errors import NotSetUpError
    from code_commit.project import find_project
    from code_commit.settings import Settings

    project, sandboxes, skipped = find_project(), {"off": None}, {}
    for mode in ("guard", "strict"):
        try:
            sandboxes[mode] = choose_sandbox(mode, project, Settings())[0]
        except NotSetUpError as error:
            skipped[mode] = str(error)
    times: dict[str, list[float]] = {mode: [] for mode in sandboxes}
    for _ in range(int(rounds)):
        for mode, sandbox in sandboxes.items():
            started = time.perf_counter()
            with Builder(project, sandbox) as builder:
                builder.run(lambda _: None, timeout=60, environment=dict(os.environ))
            times[mode].append(time.perf_counter() - started)
    print(json.dumps({"times": times, "skipped": skipped}))


def redact(data: bytes) -> None:
    """Censor a build's output as a run does, in pieces."""
    from code_commit.redaction import Redactor

    stream = Redactor([KEY]).stream(lambda _: None)
    for start in range(0, len(data), PIECE):
        stream.write(data[start : start + PIECE])
    stream.close()


def whole_files(files: Mapping[str, str], task: str, characters: int) -> set[str]:
    """Return which files are whole in a rollup of so many characters."""
    from code_commit.codebase.fit import UNLIMITED, Room, Section, fit_sections

    sections = [Section(name, len(text), f"--- {name} ---\n{text}\n\n") for name, text in sorted(files.items())]
    room = Room(UNLIMITED, characters, task)
    return {section.name for section in fit_sections(sections, {"README.md"}, room).whole}


def outlines(texts: Mapping[str, str]) -> list[str]:
    """Return the outline of each file."""
    from code_commit.codebase.outline import outline

    return [outline(name, text) for name, text in texts.items()]


def parse(text: str) -> object:
    """Parse a response."""
    from code_commit.parse import parse_response

    return parse_response(text)


def edit(text: str, pairs: Sequence[tuple[str, str]]) -> int:
    """Look the finds up and put in what replaces them; return how many do not fit."""
    from code_commit.changes import Edit
    from code_commit.verify.edits import edit_text

    return len(edit_text(text, [Edit(find, replacement) for find, replacement in pairs])[1])


def render(files: Mapping[str, str]) -> str:
    """Return the response that replaces the files."""
    fence = "^" * 9
    return "".join(f"{fence}{path}\n{content}{fence}end\n" for path, content in files.items())


def prices() -> Iterator[tuple[str, Sequence[float]]]:
    """Yield each provider's model and the dollars of an input token: plain, written to the cache, read from it."""
    from code_commit.llm.models import price_of
    from code_commit.llm.vendor import ModelChoice
    from code_commit.settings import Settings

    for provider, name in MODELS:
        price = price_of(ModelChoice(provider, name), Settings())
        if price is not None:
            write = price.input if price.cache_write is None else price.cache_write
            read = price.input if price.cached_input is None else price.cached_input
            yield f"{provider}:{name}", [dollars / 1_000_000 for dollars in (price.input, write, read)]


def output_prices() -> Iterator[tuple[str, float]]:
    """Yield each provider's model and the dollars of an output token."""
    from code_commit.llm.models import price_of
    from code_commit.llm.vendor import ModelChoice
    from code_commit.settings import Settings

    for provider, name in MODELS:
        price = price_of(ModelChoice(provider, name), Settings())
        if price is not None:
            yield f"{provider}:{name}", price.output / 1_000_000


def _cpu_seconds() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


@contextmanager
def _timed() -> Iterator[None]:
    wall, cpu = time.perf_counter(), _cpu_seconds()
    yield
    print(f"\n{time.perf_counter() - wall} {_cpu_seconds() - cpu}", flush=True)


if __name__ == "__main__":
    {"apply": apply, "capture": capture, "builds": builds}[sys.argv[1]](*sys.argv[2:])
