"""What single commands and steps cost."""

import base64
import random
import shutil
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import cache, partial
from pathlib import Path

from bench.comparing import MEGABYTE, SHOWN, Comparison, Plan, Side, growth, limit, ours, shell, step
from bench.environments import Tool
from bench.measuring import Command
from bench.projects import (
    build_output,
    clear_log,
    commit_all,
    make_checkout,
    make_repository,
    sources,
    write_file,
    write_repeated,
    write_response,
)
from bench.steps import KEY

VARIED = 4 * MEGABYTE  # bytes in which nothing is made twice
RATE = 500 * MEGABYTE  # bytes a second that redaction has to reach
FENCE = "^^^src/a.py\n"
COPY, TEE, CAT = "a copy of the bytes", "`build.sh`, piped into `tee`", "`git ls-files`, `xargs cat`"
ONE_FILE = "^^^a.txt\nnew\n^^^end\n"
QUERY = "Undo says how many files it has restored, and which it left.\n"
FIRST_RUN = datetime(2026, 11, 21, 19, 51, 35)  # noqa: DTZ001 - names of folders


def start_up(plan: Plan) -> Iterator[Comparison]:
    """Against an interpreter that does nothing."""

    def nothing(tool: Tool) -> Command:
        return Command([tool.python, "-c", "pass"], plan.folder)

    for option in ("--version", "--help"):
        yield Comparison(f"`{option}`", "`python -c pass`", ours(plan.folder, option), nothing, 40, 2.5, SHOWN)


def parse(plan: Plan) -> Iterator[Comparison]:
    """Responses of real source, of small blocks, and of nothing but fences."""
    with plan.work_folder() as folder:
        responses = {}
        for size in plan.sizes(10, 100):
            responses[size] = write_response(folder / f"{size}", dict(sources(total_bytes=size * MEGABYTE)))
            parsing, copying = step(folder, "parse", responses[size]), step(folder, "copy", responses[size])
            yield Comparison(f"parse {size} MB", COPY, parsing, copying, 9, time=4.0)
            memory = limit(peak=responses[size].stat().st_size)
            counting = step(folder, "memory_of_parse", responses[size])
            yield Comparison(f"parse {size} MB", "the response", counting, memory, 1, time=None, memory=1.3)
        if not plan.quick:
            small, large = (step(folder, "parse", responses[size]) for size in (10, 100))
            yield growth("parse 10 MB", large, small)
        blocks = ({f"a/{block}.py": "x\n" for block in range(number)} for number in (5_000, 50_000))
        small, large = (step(folder, "parse", write_response(folder / f"{len(some)}", some)) for some in blocks)
        yield growth("parse 5,000 blocks", large, small)
        root = make_repository(folder / "project")
        size = plan.sizes(5, 50)[-1]
        fences = write_repeated(folder / "fences", FENCE.encode(), size * MEGABYTE // len(FENCE) * len(FENCE))
        rejecting = ours(root, "apply", "--quiet", fences, exit_code=4, prepare=partial(clear_log, root))
        granted = limit(max(0.5, size / 100))
        yield Comparison(f"reject {size} MB of nothing but fences", "0.5 s", rejecting, granted, 3, time=1.0)


def edits(plan: Plan) -> Iterator[Comparison]:
    """Finds that are all there, none of them, one in equal lines: `code-commit apply`, and all that it does beside."""
    with plan.work_folder() as folder:
        root, equal = make_repository(folder / "project"), "    }\n" * 100_000
        small = _numbered(MEGABYTE)
        cases = {"1,000 edits of 1 MB": (small, _finds(small, 1_000), 0)}
        if not plan.quick:
            large = _numbered(10 * MEGABYTE)
            finds = _finds(large, 10_000)
            missing = [(find.replace("\n", " # not there\n", 1), "") for find, _ in finds]
            cases["10,000 edits of 10 MB"] = (large, finds, 0)
            cases["10,000 finds that are not in 10 MB"] = (large, missing, 4)
        cases["a find of 50,000 lines in 100,000 equal ones"] = (equal, [("    }\n" * 50_000, "")], 4)
        sides = {
            what: _applying(root, folder / f"{place}.txt", *case) for place, (what, case) in enumerate(cases.items())
        }
        for what, side in sides.items():
            yield Comparison(what, "2 s", side, limit(2.0), 3, time=1.0)
        if not plan.quick:
            small_side, large_side, *_ = sides.values()
            yield growth("apply 1,000 edits of 1 MB", large_side, small_side, 3)


def _applying(root: Path, response: Path, text: str, pairs: Sequence[tuple[str, str]], exit_code: int) -> Side:
    blocks = (f"^^^find\n{find}^^^replace\n{replacement}" for find, replacement in pairs)
    write_file(response, f"^^^{response.name}\n{''.join(blocks)}^^^end\n")

    def prepare() -> None:
        clear_log(root)
        write_file(root / response.name, text)

    arguments = ("apply", "--quiet", "--answer-format", "edits", response)
    return ours(root, *arguments, exit_code=exit_code, prepare=prepare)


def _numbered(size: int) -> str:
    """Return this package's own source over and over, each line with its number and none a fence."""
    lines = "".join(content for _, content in sources(total_bytes=size)).split("\n")[:-1]
    return "".join(f"{line.lstrip('^')} # {number}\n" for number, line in enumerate(lines))


def _finds(text: str, count: int) -> list[tuple[str, str]]:
    """Return so many pairs that change a line each, of three that are found, over the whole file."""
    lines = text.split("\n")[:-1]
    step = len(lines) // count
    passages = (lines[at : at + 3] for at in range(0, step * count, step))
    return [("".join(f"{line}\n" for line in part), f"{part[0]}\nnew\n{part[-1]}\n") for part in passages]


def capture(plan: Plan) -> Iterator[Comparison]:
    """The output of a build, redacted, into the log: `code-commit apply --build`."""
    with plan.work_folder() as folder:
        sides = []
        for size in plan.sizes(50, 500):
            output = write_repeated(folder / f"{size}", build_output(VARIED), size * MEGABYTE)
            root, log = _building(folder / f"project{size}", f"exec cat '{output}'"), folder / "log"
            teeing = shell(root, './build.sh | tee "$1" >/dev/null', log, prepare=partial(log.unlink, missing_ok=True))
            sides.append(_built(root))
            time = 1.2 if size == 500 else SHOWN
            yield Comparison(f"log {size} MB of build output", TEE, sides[-1], teeing, time=time, memory=SHOWN)
        if not plan.quick:
            small, large = sides
            yield growth("log 50 MB of build output", large, small, 3, memory=1.1)


def _building(root: Path, build: str) -> Path:
    make_repository(root, build)
    write_file(root.with_suffix(".response"), ONE_FILE)
    commit_all(root)
    return root


def _built(root: Path, *options: str, unavailable: int | None = None) -> Side:
    def prepare() -> None:
        clear_log(root)
        (root / "a.txt").unlink(missing_ok=True)

    arguments = ("apply", "--quiet", "--build", *options, root.with_suffix(".response"))
    return ours(root, *arguments, prepare=prepare, unavailable=unavailable)


def sandbox(plan: Plan) -> Iterator[Comparison]:
    """A build that does nothing, and all that `code-commit apply` does beside it."""
    with plan.work_folder() as folder:
        root = _building(folder / "project", "exit 0")
        for mode in ("guard", "strict"):
            sides = _built(root, "--sandbox", mode, unavailable=2), _built(root, "--sandbox", "off")
            yield Comparison(f"`apply --build --sandbox {mode}`", "`--sandbox off`", *sides, 15)


def redaction(plan: Plan) -> Iterator[Comparison]:
    """Each kind of output; none of them has the key."""
    noise = random.Random(VARIED).randbytes(VARIED)
    rows = (noise[start : start + 16].hex(" ", 2) for start in range(0, VARIED // 4, 16))
    kinds = {
        "build logs": build_output(VARIED),
        "hex dumps": "".join(f"{16 * number:08x}: {row}\n" for number, row in enumerate(rows)).encode(),
        "base64 text": base64.encodebytes(noise),
        "random bytes": noise,
        "the key's first eight characters": KEY[:8].encode() * (VARIED // 8),
    }
    size = plan.sizes(16, 64)[-1]
    with plan.work_folder() as folder:
        for kind, block in kinds.items():
            path = write_repeated(folder / "output", block, size * MEGABYTE)
            side = step(folder, "redact", path)
            yield Comparison(f"redact {size} MB of {kind}", "500 MB/s", side, limit(size * MEGABYTE / RATE), time=1.0)
        tenth = write_repeated(folder / "tenth", block, size * MEGABYTE // 10)
        yield growth(f"redact {size / 10} MB", side, step(folder, "redact", tenth))


def rollup(plan: Plan) -> Iterator[Comparison]:
    """The rollup of a checkout, and one that has to fit."""
    with plan.work_folder() as folder:
        sides = []
        for size in plan.sizes(10, 100):
            root = make_checkout(folder / f"{size}", total_bytes=size * MEGABYTE)
            cat = shell(root, "git ls-files -z | xargs -0 cat >agent-config/cat.txt")
            sides.append(ours(root, "rollup", "--quiet"))
            time = 4.0 if size == 10 else 2.5
            yield Comparison(f"roll up {size} MB", CAT, sides[-1], cat, 7, time=time, memory=SHOWN)
        if not plan.quick:
            small, large = sides
            yield growth("roll up 10 MB", large, small, memory=SHOWN)
        write_file(folder / "10/agent-config/query.txt", QUERY)
        granted = limit(3.0, peak=500 * MEGABYTE)
        for share in (5, 50):
            fitting = ours(folder / "10", "rollup", "--quiet", "--fit", str(10 * MEGABYTE // share // 3))
            what = f"`rollup --fit` of 10 MB into a {share}th, with outlines"
            yield Comparison(what, "3 s, 500 MB", fitting, granted, 3, time=1.0, memory=1.0)


def log(plan: Plan) -> Iterator[Comparison]:
    """The list of runs."""
    number = plan.sizes(10, 100)[-1]
    with plan.work_folder() as folder:
        runs = cache(partial(_with_runs, folder))
        small, large = (lambda tool, size=size: ours(runs(tool, size), "log")(tool) for size in (number, 10 * number))
        yield growth(f"list {number:,} runs", large, small)


def _with_runs(folder: Path, tool: Tool, number: int) -> Path:
    """Make a project with the log of a run, so many times."""
    root = _building(folder / f"{tool.name.replace('/', '-')}-{number}", "exit 0")
    side = _built(root)(tool)
    assert isinstance(side, Command)
    side.run()
    (first,) = (root / "agent-config" / "logs").iterdir()
    for minute in range(1, number):
        name = f"{FIRST_RUN + timedelta(minutes=minute):%Y-%m-%d-%H-%M-%S}-committing-code"
        shutil.copytree(first, first.with_name(name))
        record = (first / "run.json").read_text("utf-8").replace(first.name, name)
        (first.with_name(name) / "run.json").write_text(record, "utf-8")
    return root
