"""Rolling up checkouts of 1, 10 and 100 MB, against `git ls-files | xargs cat`. `python -m bench.rollup`"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.environments import UnavailableError
from bench.job import commit_all, git, write_sources
from bench.measuring import Command, CommandFailedError, in_turns
from bench.peers import FILES_TO_PROMPT, GITINGEST, REPOMIX, Peer
from bench.rows import Row, Skipped, Target, timed, weighed
from bench.running import Plan, run_alone

MEGABYTE = 1_000_000
SIZES = (1, 10, 100)  # MB
ROUNDS = {1: 15, 10: 11, 100: 5}
CAT = "git ls-files | xargs cat"
CAT_TARGET = Target(2.5)
CAT_TARGET_FROM = 10  # MB

PACKED_FROM = 10  # MB
PACKER_ROUNDS = {10: 3, 100: 1}
PACKER_TIMEOUT = 120.0  # seconds


@dataclass(frozen=True, slots=True)
class Packer:
    """Another tool that makes one text of a checkout."""

    peer: Peer
    arguments: tuple[str, ...]
    target: Target | None = None


PACKERS = (
    Packer(FILES_TO_PROMPT, (".", "-o", "{output}")),
    Packer(GITINGEST, (".", "-o", "{output}"), Target(1 / 20)),
    Packer(REPOMIX, ("--quiet", "--no-security-check", "-o", "{output}"), Target(1 / 20)),
)


def measure(plan: Plan) -> Iterator[Row | Skipped]:
    """Yield time and memory against each peer, for each size."""
    for size in plan.sizes(*SIZES):
        with plan.work_folder() as folder:
            root = make_checkout(folder, size)
            yield from _against_cat(plan, root, size)
            for packer in PACKERS if not plan.quick and size >= PACKED_FROM else ():
                yield from _against_packer(plan, root, size, packer)


def make_checkout(folder: Path, size: int) -> Path:
    """Make a repository of real sources, so many MB of them."""
    root = folder / "project"
    root.mkdir()
    git(root, "init", "-q")
    (root / ".gitignore").write_text("/agent-config\n")
    write_sources(root / "src", total_bytes=size * MEGABYTE)
    commit_all(root)
    (root / "agent-config").mkdir(mode=0o700)
    return root


def _against_cat(plan: Plan, root: Path, size: int) -> Iterator[Row]:
    cat = ["sh", "-c", 'git ls-files -z | xargs -0 cat > "$0"', root / "agent-config" / "cat.txt"]
    commands = {
        "ours": Command([plan.ours.script("code-commit"), "rollup", "--quiet"], root),
        "cat": Command(cat, root),
    }
    costs = in_turns(commands, plan.rounds(ROUNDS[size]))
    target = CAT_TARGET if size >= CAT_TARGET_FROM else None
    what, in_bytes = f"rollup of {size} MB", size * MEGABYTE
    yield timed("rollup", what, CAT, costs["ours"], costs["cat"], target=target, series="rollup", size=in_bytes)
    yield weighed("rollup", f"{what}, memory", CAT, costs["ours"], costs["cat"], series="rollup, memory", size=in_bytes)


def _against_packer(plan: Plan, root: Path, size: int, packer: Packer) -> Iterator[Row | Skipped]:
    """Yield the rows against another tool, or why there are none."""
    what, peer = f"rollup of {size} MB", str(packer.peer)
    ours = Command([plan.ours.script("code-commit"), "rollup", "--quiet"], root)
    output = root / "agent-config" / "packed.txt"
    environment = {"GIT_TERMINAL_PROMPT": "0", "npm_config_update_notifier": "false"}
    try:
        argv = [packer.peer.install(plan.cache), *(word.format(output=output) for word in packer.arguments)]
        theirs = Command(argv, root, environment, timeout=PACKER_TIMEOUT)
        costs = in_turns({"ours": ours, "theirs": theirs}, PACKER_ROUNDS[size], warm_up=False)
    except (UnavailableError, CommandFailedError) as error:
        yield Skipped("rollup", what, peer, str(error).partition("\n")[0][:200])
        return
    figures = {"series": "rollup", "size": size * MEGABYTE}
    yield timed("rollup", what, peer, costs["ours"], costs["theirs"], target=packer.target, **figures)
    figures["series"] = "rollup, memory"
    yield weighed("rollup", f"{what}, memory", peer, costs["ours"], costs["theirs"], **figures)


if __name__ == "__main__":
    raise SystemExit(run_alone("rollup", measure, __doc__))
