"""How long `--version` and `--help` take, against an interpreter that does nothing. `python -m bench.startup`"""

from collections.abc import Iterator

from bench.measuring import Command, in_turns
from bench.rows import Row, Skipped, Target, timed, weighed
from bench.running import Plan, run_alone

ROUNDS = 40
TARGETS = {"--version": Target(2.0), "--help": Target(3.0)}


def measure(plan: Plan) -> Iterator[Row | Skipped]:
    """Yield the time and the memory of both."""
    ours = plan.ours
    with plan.work_folder() as folder:
        commands = {
            "--version": Command([ours.script("code-commit"), "--version"], folder),
            "--help": Command([ours.script("code-commit"), "--help"], folder),
            "pass": Command([ours.python, "-c", "pass"], folder),
        }
        costs = in_turns(commands, plan.rounds(ROUNDS))
    for option, target in TARGETS.items():
        what = f"start-up, `{option}`"
        yield timed("startup", what, "python -c pass", costs[option], costs["pass"], target=target)
    yield weighed("startup", "start-up, `--help`, memory", "python -c pass", costs["--help"], costs["pass"])


if __name__ == "__main__":
    raise SystemExit(run_alone("startup", measure, __doc__))
