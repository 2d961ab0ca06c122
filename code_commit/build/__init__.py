"""Running build.sh: the supervised process, its environment, its sandbox, and what it must not change."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from code_commit.build.command import build_command, build_environment, harden_process
from code_commit.build.fingerprints import FOLDER_NAME, NOT_PUT_BACK, Fingerprints, Saved
from code_commit.build.process import DeferredSignals, Ending, Started, start_process, supervise
from code_commit.build.sandbox import Sandbox, choose_sandbox
from code_commit.errors import BuildError
from code_commit.project import BUILD_SCRIPT, Project
from code_commit.protected import never_removed, protected_from_build
from code_commit.run_record import BuildResult
from code_commit.terminal import shown

__all__ = ["Sandbox", "build_command", "build_environment", "choose_sandbox", "harden_process", "run_build"]


def run_build(  # noqa: PLR0913 - the two that have no default stand by position, the others by name
    project: Project,
    write: Callable[[bytes], object],
    *,
    timeout: float,
    environment: Mapping[str, str],
    sandbox: Sandbox | None = None,
    warn: Callable[[str], object] = lambda _: None,
) -> BuildResult:
    """Run build.sh in the root and return how it ended. `write` gets its output in pieces up to 1 MiB.

    `timeout` is in seconds, 0 for none. Raises BuildError when build.sh cannot be started, or when it changed a
    protected file, which is then as it was before. What `write` or a signal's handler raises ends the build, with all
    that descends from it, and is raised again.
    """
    argv = build_command(project, environment, warn)
    protected = protected_from_build(project)

    def start() -> Started:
        try:
            if sandbox is not None:
                return sandbox.start(argv, environment, project, protected)
            process = start_process(argv, environment, project.root)
            return Started(process, group=process.pid)
        except OSError as error:
            program = "bwrap" if sandbox else BUILD_SCRIPT
            raise BuildError(f"{program} cannot be started: {error.strerror}") from error

    before = _remember(project, protected, sandbox)
    saved = Saved(project.root, project.agent_config / FOLDER_NAME)
    with DeferredSignals() as signals:
        try:
            ending = supervise(start, write, timeout, signals)
        except BaseException:
            if damages := before.put_back(saved):
                warn(_explain(damages, project, saved))
            raise
        if damages := before.put_back(saved):
            raise BuildError(_explain(damages, project, saved))
    return _result(ending)


def _remember(project: Project, protected: Sequence[Path], sandbox: Sandbox | None) -> Fingerprints:
    """Remember the protected files; agent-config too, but for what is in its logs, unless a sandbox hides it."""
    shells = [project.git.git_dir] if project.git else []
    own = [] if sandbox else [project.logs, project.agent_config / FOLDER_NAME]
    agent_config = [] if sandbox else [project.agent_config]
    paths = [*shells, *agent_config, *own, *protected]
    return Fingerprints(paths, shells=[*shells, *own], never_removed=never_removed(project))


def _explain(damages: Mapping[Path, str], project: Project, saved: Saved) -> str:
    listing = ", ".join(f"{_shown(path, project)} ({damage})" for path, damage in damages.items())
    is_whole = not any(NOT_PUT_BACK in damage for damage in damages.values())
    undone = "it was put back" if is_whole else "not all of it could be put back"
    where = f"; what was there is kept in {_shown(saved.folder, project)}" if saved.folder else ""
    return f"the build changed what it must not; {undone}: {listing}{where}; look at what {BUILD_SCRIPT} runs"


def _shown(path: Path, project: Project) -> str:
    return shown(str(path.relative_to(project.root) if path.is_relative_to(project.root) else path))


def _result(ending: Ending) -> BuildResult:
    """Tell a build that failed from one that never was."""
    if ending.timed_out:
        return BuildResult(None, None, True, ending.seconds, ending.output_bytes)
    code = ending.returncode or 0
    if not ending.was_executed:
        said = shown(ending.head.decode("utf-8", "replace").strip())
        if code < 0:
            raise BuildError(f"{BUILD_SCRIPT} killed the bubblewrap around it: how it ended is not known")
        if said.startswith("bwrap: execvp"):
            raise BuildError(f"{BUILD_SCRIPT} cannot be started in the sandbox: {said}")
        raise BuildError(f"the sandbox cannot be set up: {said}; fix it, or use --sandbox off")
    exit_code, signal = (code, None) if code >= 0 else (None, -code)
    return BuildResult(exit_code, signal, False, ending.seconds, ending.output_bytes)
