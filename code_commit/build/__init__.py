"""Running build.sh: the supervised process, its environment, its sandbox, and what it must not change."""

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from code_commit.build.command import build_command
from code_commit.build.environment import build_environment
from code_commit.build.fingerprints import NOT_PUT_BACK, Fingerprints
from code_commit.build.hardening import harden_process
from code_commit.build.kept import FOLDER_NAME, Kept
from code_commit.build.launch import Launch
from code_commit.build.sandbox import Sandbox, choose_sandbox
from code_commit.build.signals import DeferredSignals
from code_commit.build.supervise import Ending, supervise
from code_commit.errors import BuildError
from code_commit.project import BUILD_SCRIPT, Project
from code_commit.protected import never_removed, protected_from_build
from code_commit.run_record import BuildResult
from code_commit.terminal import shown

__all__ = ["Sandbox", "build_environment", "choose_sandbox", "harden_process", "run_build"]


def run_build(  # noqa: PLR0913 - the two that have no default stand by position, the others by name
    project: Project,
    write: Callable[[bytes], object],
    *,
    timeout: float,
    environment: Mapping[str, str],
    sandbox: Sandbox | None = None,
    warn: Callable[[str], object] = lambda _: None,
) -> BuildResult:
    """Run build.sh in the root and return how it ended. `write` gets its stdout and stderr in pieces up to 256 KiB.

    `timeout` is in seconds, 0 for none. Raises BuildError when build.sh cannot be started, or when it changed a
    protected file, which is then as it was before. What `write` or a signal's handler raises ends the build, with all
    that descends from it, and is raised again.
    """
    argv = build_command(project, environment, warn)
    protected = protected_from_build(project)
    order = Launch(argv, environment, project.root)
    if sandbox is not None:
        order = _boxed(order, sandbox, project, protected)
    kept = Kept(project.root, project.agent_config / FOLDER_NAME)
    with DeferredSignals() as signals, _remember(project, protected, sandbox) as before:
        try:
            ending = supervise(order, write, timeout, signals)
        except BaseException:
            if damages := before.put_back(kept):
                warn(_explain(damages, project, kept))
            raise
        if damages := before.put_back(kept):
            raise BuildError(_explain(damages, project, kept))
    return _result(ending, sandbox)


def _boxed(order: Launch, sandbox: Sandbox, project: Project, protected: Sequence[Path]) -> Launch:
    """Put the order into the sandbox."""
    options = sandbox.options(project, protected, order.environment)
    return dataclasses.replace(
        order,
        argv=(sandbox.program, *options, "--", *order.argv),
        boxed=True,
        keeps_monitor=sandbox.mode == "strict",
        namespace=sandbox.namespace,
    )


def _remember(project: Project, protected: Sequence[Path], sandbox: Sandbox | None) -> Fingerprints:
    """Remember the protected files; agent-config too, but for what is in its logs, unless a sandbox hides it."""
    shells = [project.git.git_dir] if project.git else []
    own = [] if sandbox else [project.logs, project.agent_config / FOLDER_NAME]
    agent_config = [] if sandbox else [project.agent_config]
    return Fingerprints(
        [*shells, *agent_config, *own, *protected], shells=[*shells, *own], lasting=never_removed(project)
    )


def _explain(damages: Mapping[Path, str], project: Project, kept: Kept) -> str:
    listing = ", ".join(f"{_shown(path, project)} ({damage})" for path, damage in damages.items())
    is_whole = not any(NOT_PUT_BACK in damage for damage in damages.values())
    undone = "it was put back" if is_whole else "not all of it could be put back"
    where = f"; what was there is kept in {_shown(kept.folder, project)}" if kept.folder else ""
    return f"the build changed what it must not; {undone}: {listing}{where}; look at what {BUILD_SCRIPT} runs"


def _shown(path: Path, project: Project) -> str:
    return shown(str(path.relative_to(project.root) if path.is_relative_to(project.root) else path))


def _result(ending: Ending, sandbox: Sandbox | None) -> BuildResult:
    """Tell a build that failed from one that never was."""
    word, _, number = ending.answer.partition(" ")
    if ending.timed_out:
        return BuildResult(None, None, True, ending.seconds, ending.output_bytes)
    said = ending.head.decode("utf-8", "replace").strip()
    if word == "failed":
        program = "bwrap" if sandbox else BUILD_SCRIPT
        raise BuildError(f"{program} cannot be started: {os.strerror(int(number))}")
    if word == "unboxed":
        raise BuildError(f"the sandbox cannot be set up: {shown(said)}; mend it, or use --sandbox off")
    if sandbox and number == "1" and said.startswith("bwrap: execvp"):
        raise BuildError(f"{BUILD_SCRIPT} cannot be started in the sandbox: {shown(said)}")
    if word == "lost":
        why = os.strerror(int(number))
        raise BuildError(f"the process that watches {BUILD_SCRIPT} could not go on, how it ended is not known: {why}")
    if word != "ended":
        raise BuildError(f"{BUILD_SCRIPT} killed the process that watches it: how it ended is not known")
    code = int(number)
    exit_code, signal = (code, None) if code >= 0 else (None, -code)
    return BuildResult(exit_code, signal, False, ending.seconds, ending.output_bytes)
