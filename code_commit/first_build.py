"""The build before anything is sent: it tells the LLM what fails, and nothing is paid for where it cannot be run."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from code_commit.apply.lock import lock_tree
from code_commit.build import Builder, build_environment, harden_process
from code_commit.check import RunPlan
from code_commit.check.codebase import codebase_for, require_sendable
from code_commit.errors import BuildError, Named
from code_commit.interrupts import hold_signals, interruptible
from code_commit.project import BUILD_SCRIPT
from code_commit.prompts.layout import FailedBuild
from code_commit.prompts.output import read_build_output
from code_commit.runs.build_log import BuildLog
from code_commit.runs.log import RunLog
from code_commit.runs.progress import Progress
from code_commit.runs.record import FIRST_BUILD, GIVEN_BUILD, BuildResult, RunRecord
from code_commit.runs.review import review_changes
from code_commit.runs.words import duration
from code_commit.start import keep_latest_runs, open_log
from code_commit.status import Status
from code_commit.terminal import shown

_PASSES_HERE = f"{BUILD_SCRIPT} passes here.\n"
_NOT_SEEN_HERE = (
    f"the given failure does not occur here: {BUILD_SCRIPT} passes before any change, so a pass afterward does not"
    " show that the failure is fixed"
)
_GIVEN = "\nOutput of a build that failed elsewhere:\n"


class Begun(NamedTuple):
    """A run before its codebase is made: its plan, and its log if it has built first. Then the tree is locked."""

    plan: RunPlan
    log: RunLog | None = None

    @property
    def has_ended(self) -> bool:
        """Whether nothing has to be repaired."""
        return self.log is not None and self.log.record.finished is not None


@contextmanager
def building_first(plan: RunPlan, progress: Progress) -> Iterator[Begun]:
    """Run build.sh where the plan wants that, and yield the plan with its output if it failed; keep the tree locked.

    An error until the end of the block is recorded in the log. Raises NotSetUpError, and BuildError for a build that
    cannot be run, that the sandbox or the machine made fail, or that did not end in time. A resumed run that has its
    first build does not repeat it. A repair ends where its build passes, unless it was given the output of another.
    """
    resumed = plan.inputs.resumed
    if not plan.builds_first:
        yield Begun(plan)
        return
    if resumed and resumed.record.command == "rollup":  # the choice of files that followed its first build
        yield Begun(with_first_output(plan, *resumed))
        return
    if plan.request and not plan.request.select and plan.inputs.command == "run":
        require_sendable(plan, codebase_for(plan))
    hold_signals()
    harden_process()
    plan.project.agent_config.mkdir(mode=0o700, exist_ok=True)
    with lock_tree(plan.project), open_log(plan, progress) as log:
        if plan.inputs.given is not None:
            log.write_bytes(GIVEN_BUILD, plan.inputs.given)
            progress.say(
                f"the given build output, {len(plan.inputs.given):,} bytes: {log.record.log_dir}/{GIVEN_BUILD}"
            )
        if not _tells(plan, log.record):
            with progress, Builder(plan.project, plan.sandbox) as builder:
                interruptible(lambda: _build(plan, log, builder))
        plan = with_first_output(plan, log.folder, log.record)
        if plan.first is None and plan.inputs.command == "repair":
            keep_latest_runs(plan, log)
            log.finish(Status.SUCCESS, f"nothing to repair: {BUILD_SCRIPT} passes")
        elif plan.first and plan.lack:
            raise plan.lack
        yield Begun(plan, log)


def _tells(plan: RunPlan, record: RunRecord) -> bool:
    """Tell whether the record has a first build with a result: a pass, or a failure that is the code's."""
    build = record.first_build
    return build is not None and not (_is_of_machine(plan, build) or build.is_of_set_up or build.timed_out)


def with_first_output(plan: RunPlan, folder: Path, record: RunRecord) -> RunPlan:
    """Return the plan with the outputs that a log has of a first build, and of a given one. Raises LogError."""
    if record.first_build is None:
        return plan
    has_passed, has_given = record.first_build.passed, (folder / GIVEN_BUILD).exists()

    def read(name: str) -> str:
        shown_name = f"{record.log_dir}/{name}"
        return plan.redactor.redact_text(read_build_output(folder / name, plan.settings, shown_name))

    if has_passed and (folder / FIRST_BUILD).exists():
        plan = plan._replace(passing=read(FIRST_BUILD))
    if has_passed and not has_given:
        return plan
    output = _PASSES_HERE if has_passed else read(FIRST_BUILD)
    first = FailedBuild(output, given=_GIVEN + read(GIVEN_BUILD) if has_given else "")
    printed = first.output + first.given
    request = plan.request and plan.request._replace(query=plan.ranking_query, output=printed)
    return plan._replace(first=first, request=request)


def _build(plan: RunPlan, log: RunLog, builder: Builder) -> None:
    with log.build_log(FIRST_BUILD, partial(setattr, log.record, "first_build")) as build_log:
        if plan.inputs.built:
            build_log.result, output = plan.inputs.built
            build_log.write(output.encode())
        else:
            build_log.result = run_build(plan, log, builder, build_log, 0)
    if plan.tree:
        log.add_warning("review", *review_changes(plan.project, plan.tree, log.record))
    result = build_log.result
    if result.timed_out:
        raise BuildError(
            f"{BUILD_SCRIPT} did not end within {duration(plan.settings.build_timeout)}, so nothing was sent: fix it,"
            " or use a longer ",
            Named("build_timeout"),
        )
    require_result_of_code(plan, result, "nothing was sent")
    require_no_refusal(result, "nothing was sent")
    if result.passed and (log.folder / GIVEN_BUILD).exists():
        log.add_warning("build", _NOT_SEEN_HERE)


def run_build(plan: RunPlan, log: RunLog, builder: Builder, build_log: BuildLog, attempt: int) -> BuildResult:
    """Run build.sh for an attempt, 0 before the first, and return its result. Raises BuildError."""
    environment = build_environment(plan.inputs.environment, plan.keys.texts, attempt, log.record.run)
    warn = partial(log.add_warning, "build")
    return builder.run(build_log.write, timeout=plan.settings.build_timeout, environment=environment, warn=warn)


def require_result_of_code(plan: RunPlan, result: BuildResult, outcome: str) -> None:
    """Raise BuildError for a build whose exit code says that the machine failed; `outcome` is what came of it."""
    if _is_of_machine(plan, result):
        raise BuildError(
            f"{BUILD_SCRIPT} ended with exit code {result.shell_code}, so {outcome}: this means that the machine"
            " failed, not the code (infrastructure_exit_codes); fix the machine first"
        )


def require_no_refusal(result: BuildResult, outcome: str) -> None:
    """Raise BuildError for a build that the sandbox, a missing program, a full disk or memory made fail; `outcome` is
    what came of it.
    """
    if result.full:
        raise BuildError(
            f"no space is left for {BUILD_SCRIPT}, so {outcome}: {result.full}\nFree some disk space or memory."
        )
    if result.missing:
        raise BuildError(
            f"{BUILD_SCRIPT} calls {shown(result.missing)}, which is not installed, so {outcome}: no answer can fix"
            f" that\nInstall it, or let {BUILD_SCRIPT} install it. If only the sandbox hides it, use ",
            Named("sandbox", "off"),
            ".",
        )
    if result.refused:
        raise BuildError(
            f"the sandbox made {BUILD_SCRIPT} fail, so {outcome}: {result.refused}\n",
            f"Remove that from {BUILD_SCRIPT}, or use ",
            Named("sandbox", "off"),
            ", or start a new run with sandbox_network = true in config.toml (for the network in strict).",
        )


def _is_of_machine(plan: RunPlan, build: BuildResult) -> bool:
    return build.shell_code in plan.settings.infrastructure_exit_codes
