"""The workflow of the specification: ask, change, build; up to three repairs. The loop, and nothing else."""

from dataclasses import dataclass

from code_commit.apply import apply_changes
from code_commit.build import Sandbox, build_environment, run_build
from code_commit.changes import FileChange, RejectedResponseError
from code_commit.config import ApiKey, Settings
from code_commit.errors import EXIT_BUILD_FAILED, EXIT_SUCCESS
from code_commit.exchange import Complete, Prompt, Response
from code_commit.parse import parse_response
from code_commit.project import Project
from code_commit.prompts import Task, initial_prompt, read_build_output, rejected_prompt, repair_prompt
from code_commit.run_log import AttemptLog, RunLog
from code_commit.run_record import BuildResult, RunRecord
from code_commit.verify import Rules, verify_changes


@dataclass(frozen=True, slots=True)
class Job:
    """What a run works on and within which rules."""

    project: Project
    settings: Settings
    task: Task
    rules: Rules
    keys: tuple[ApiKey, ...]
    environment: dict[str, str]
    sandbox: Sandbox | None


def run_workflow(job: Job, complete: Complete, log: RunLog) -> RunRecord:
    """Run attempts until the build passes or none is left, and return the finished record.

    Raises RejectedResponseError when the last response, or with `--on-rejected stop` any, was rejected, and the errors
    of the steps.
    """
    question = prompt = initial_prompt(job.task)
    replacements: dict[str, FileChange] = {}
    last = 1 + job.settings.max_repairs
    for number in range(1, last + 1):
        attempt = log.begin_attempt(number)
        response = _ask(complete, prompt, attempt)

        try:
            changes = verify_changes(parse_response(response.complete_text()), job.project, job.rules)
        except RejectedResponseError as rejection:
            attempt.rejected(rejection.violations)
            if job.settings.on_rejected == "stop" or number == last:
                raise
            prompt = rejected_prompt(question, job.task.prompts.rejected_response, rejection.violations)
            continue
        apply_changes(changes, job.project, log.snapshot)
        attempt.applied(changes)
        replacements |= {change.path: change for change in changes.file_changes}

        build = _build(job, log, attempt, number)
        if build.passed:
            return log.finish("success", EXIT_SUCCESS)
        output = read_build_output(attempt.build_file, job.settings.build_output_limit, attempt.shown_build_file())
        question = prompt = repair_prompt(job.task, output, replacements.values())
    return log.finish("build_failed", EXIT_BUILD_FAILED)


def _ask(complete: Complete, prompt: Prompt, attempt: AttemptLog) -> Response:
    attempt.asking(prompt)
    response = complete(prompt, attempt)
    attempt.responded(response)
    return response


def _build(job: Job, log: RunLog, attempt: AttemptLog, number: int) -> BuildResult:
    environment = build_environment(job.environment, job.keys, number, log.record.run)
    timeout = job.settings.build_timeout
    with attempt.build_log() as build_log:
        build_log.result = run_build(
            job.project,
            build_log.write,
            timeout=timeout,
            environment=environment,
            sandbox=job.sandbox,
            warn=log.add_warning,
        )
    return build_log.result
