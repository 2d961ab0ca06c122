"""How long `--version` and `--help` take, against an interpreter that does nothing."""

from collections.abc import Iterator

from bench.measuring import Command, in_turns
from bench.plan import Plan
from bench.rows import Row, Target, timed, weighed

ROUNDS = 40
TARGET = Target(3.0)
PASS = "python -c pass"


def measure(plan: Plan) -> Iterator[Row]:
    """Yield the time of both and the memory of one."""
    with plan.work_folder() as folder:
        commands = {option: Command([plan.command, option], folder) for option in ("--version", "--help")}
        commands[PASS] = Command([plan.python, "-c", "pass"], folder)
        costs = in_turns(commands, plan.rounds(ROUNDS))
    for option in ("--version", "--help"):
        yield timed(f"start-up, `{option}`", PASS, costs[option], costs[PASS], TARGET)
    yield weighed("start-up, `--help`", PASS, costs["--help"], costs[PASS])
