"""The run of build.sh: the supervised process, its environment, its sandbox, and the files that it must not change."""

import os
import shlex
import signal
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from code_commit.build.command import build_command, build_environment, harden_process, hardened_meanwhile
from code_commit.build.fingerprints import FOLDER_NAME, Damage, Fingerprints, Quarantine, stamp_files
from code_commit.build.process import Ending, Started, start_process, supervise
from code_commit.build.refusals import TAIL, Places, find_full, find_missing, find_refusal
from code_commit.build.sandbox import PRIVATE_FOLDERS, Sandbox, choose_sandbox
from code_commit.errors import BuildError, Named
from code_commit.files import read_regular_file
from code_commit.git import UnansweredError
from code_commit.interrupts import DeferredSignals
from code_commit.paths.protected import protected_from_build, watched_from_build
from code_commit.project import BUILD_SCRIPT, Project
from code_commit.runs.record import FIRST_SHELL_SIGNAL_CODE, BuildResult
from code_commit.terminal import shown

__all__ = ["Builder", "Sandbox", "build_environment", "choose_sandbox", "harden_process", "hardened_meanwhile"]

MOST_NAMED = 5  # of the files of the tool itself
_MOST_FILES = 1_000  # that have words of a refusal


class Builder(AbstractContextManager["Builder"]):
    """Runs the builds of one run. Protected files must stay as they are before the first build."""

    def __init__(self, project: Project, sandbox: Sandbox | None = None) -> None:
        self._project = project
        self._sandbox = sandbox
        self._agent_config = Path(os.path.realpath(project.agent_config))
        self._read_only: list[Path] = []
        self._before: Fingerprints | None = None
        self._submodules: frozenset[str] = frozenset()
        self._own = [] if sandbox else watched_from_build(project)
        self._own_files: dict[Path, list[int]] = {}

    def __exit__(self, *exception: object) -> None:
        if self._before is not None:
            self._before.close()

    def run(
        self,
        write: Callable[[bytes], object],
        *,
        timeout: float,
        environment: Mapping[str, str],
        warn: Callable[[str], object] = lambda _: None,
    ) -> BuildResult:
        """Run build.sh in the root and return how it ended. `write` gets its output in pieces up to 1 MiB.

        `timeout` is in seconds, 0 for none. Raises BuildError when build.sh cannot be started, or when a build changed
        a protected file, which is then put back. An exception of `write` or of a signal handler ends the build and all
        its descendants, and is raised again.
        """
        with DeferredSignals() as signals:
            if self._before is not None:
                self._put_back(self._before, "a process of the last build, or another program,")
            argv, tail = build_command(self._project, environment, warn), bytearray()

            def write_and_look(data: bytes) -> None:
                write(data)
                tail.extend(data)
                del tail[:-TAIL]

            with self.guarding("the build", warn):
                ending = supervise(lambda: self._start(argv, environment), write_and_look, timeout, signals)
        result = _result(ending, in_sandbox=self._sandbox is not None)
        if result.passed:
            return result
        end = bytes(tail)
        missing = self._missing(end, result.shell_code, environment.get("PATH", ""))
        full = find_full(end, self._files_with)
        return replace(result, refused=self._refusal(end), missing=missing, full=full)

    @contextmanager
    def guarding(self, who: str, warn: Callable[[str], object]) -> Iterator[None]:
        """Put back the protected files that `who` changes inside the block. Raises BuildError if there are any.

        An exception of the block is raised again, and `warn` told of the change.
        """
        if self._before is None:
            self._before = self._remember()
        try:
            yield
        except BaseException:
            try:
                self._put_back(self._before, who)
            except BuildError as error:
                warn(str(error))
            raise
        self._put_back(self._before, who)

    def _refusal(self, tail: bytes) -> str:
        """Return the line that says that the sandbox refused something; "" without a sandbox."""
        if self._sandbox is None:
            return ""
        kept = [*self._read_only, *watched_from_build(self._project), self._project.agent_config]
        kept = [path for path in kept if path.exists() and not path.is_symlink()]  # as the sandbox mounts them
        writable = [self._project.root, *self._sandbox.caches]
        if self._sandbox.mode == "strict":  # all is read-only but the project, and its repository in it
            git = self._project.git
            kept += [Path(os.sep), Path.home(), *((git.git_dir, git.common_dir) if git else ())]
            writable += map(Path, PRIVATE_FOLDERS)
        has_network = self._sandbox.mode == "guard" or self._sandbox.network
        return find_refusal(tail, Places(self._project.root, kept, writable, has_network), self._files_with)

    def _missing(self, tail: bytes, exit_code: int | None, path: str) -> str:
        """Return the program or module of build.sh that is not installed; "" where an answer may supply it."""

        def has(name: str) -> bool:
            return any({name, f"{name}.py"} & {*path.split("/")} for path in self._project.index().files)

        with suppress(OSError, UnansweredError):
            script = read_regular_file(self._project.build_script).decode("utf-8", "replace")
            folders = (Path(folder) for folder in path.split(os.pathsep))
            in_project = any(not each.is_absolute() or each.is_relative_to(self._project.root) for each in folders)
            return find_missing(tail, exit_code, script, has, looks_in_project=in_project)
        return ""

    def _files_with(self, words: str) -> dict[str, str]:
        """Return the texts of the project's files but build.sh that have the words in any case, by their paths."""
        git, texts = self._project.git, dict[str, str]()
        if git is None:
            return texts
        options = ["-IliFz", "--no-color", "--no-full-name", "--untracked"]
        answer = git.ask(["grep", *options, "-e", words, "--", ".", f":!{BUILD_SCRIPT}"])
        for name in os.fsdecode(answer.stdout).split("\0")[:-1][:_MOST_FILES]:
            with suppress(OSError):
                texts[name] = read_regular_file(self._project.root / name).decode("utf-8", "replace")
        return texts

    def _start(self, argv: Sequence[str], environment: Mapping[str, str]) -> Started:
        try:
            if self._sandbox is not None:
                return self._sandbox.start(argv, environment, self._project, self._read_only)
            process = start_process(argv, environment, self._project.root)
            return Started(process, group=process.pid)
        except OSError as error:
            program = "bwrap" if self._sandbox else BUILD_SCRIPT
            raise BuildError(f"{program} cannot be started: {error.strerror}") from error

    def _remember(self) -> Fingerprints:
        """Record the protected files, and agent-config unless a sandbox hides it. Make the folders to mount over."""
        project, git = self._project, self._project.git
        repositories = list(dict.fromkeys((git.git_dir, git.common_dir))) if git else []
        info = [folder / "info" for folder in repositories]
        marks = [git.common_dir / "objects", git.common_dir / "refs"] if git else []  # without them it is no repository
        protected = protected_from_build(project)
        outside = [path for path in protected if not _is_ours(path, project)]
        own = [project.logs, self._agent_config / FOLDER_NAME]
        agent_config = [project.agent_config, self._agent_config]
        if self._sandbox is not None:
            own, agent_config = [], []
            self._read_only = [path for path in protected if not _is_rewritten(path, repositories)] + info
            hooks = Path(os.path.realpath(git.hooks_dir)) if git else None
            for folder in (*info, *(path for path in protected if path == hooks)):
                if folder not in outside:
                    with suppress(OSError):
                        folder.mkdir(parents=True)
        self._submodules = _submodules(project)
        self._own_files = stamp_files(self._own)
        return Fingerprints(
            project.root,
            [*agent_config, *repositories, *info, *protected],
            identity_only=[*repositories, *marks, *info, *own],
            head=git.git_dir / "HEAD" if git else None,
            only_told=outside,
        )

    def _put_back(self, before: Fingerprints, who: str) -> None:
        """Put back every protected file that was changed. Raises BuildError if there is one."""
        quarantine = Quarantine(self._project.root, self._agent_config)
        damages = before.put_back(quarantine)
        is_undone = all(damage.is_undone for damage in damages.values())
        for name in sorted(_submodules(self._project) - self._submodules) if is_undone else ():
            path = self._project.root / name
            before.forbid(path / ".git")
            damages |= before.put_back(quarantine)
            repair = f"git rm --cached {shlex.quote(name)}"
            damages[path] = Damage("a repository in git's index", is_undone=False, detail=repair)
        for name in self._submodules:
            path = self._project.root / name / ".git"
            if damages.get(path) == Damage("new"):
                damages[path] = Damage("new", detail="run git submodule update --init before the run")
        before_it, now = self._own_files, stamp_files(self._own)
        changed = sorted(path for path in before_it | now if before_it.get(path) != now.get(path))
        damages |= dict.fromkeys(changed[:MOST_NAMED], Damage("of code-commit itself, changed", is_undone=False))
        if damages:
            raise BuildError(_explain(damages, self._project, quarantine, who))


def _submodules(project: Project) -> frozenset[str]:
    with suppress(UnansweredError, OSError):
        return project.index().submodules
    return frozenset()


def _is_rewritten(path: Path, repositories: Collection[Path]) -> bool:
    """Tell whether the path is a submodule's configuration: `git submodule update` replaces it by an equal one."""
    return path.name == "config" and path.parent not in repositories and (path.parent / "HEAD").is_file()


def _is_ours(path: Path, project: Project) -> bool:
    """Tell whether the path is in the project or its repository. Only such paths are put back."""
    real = Path(os.path.realpath(path.parent), path.name)
    git = project.git
    folders = [project.root, *((git.work_tree, git.git_dir, git.common_dir) if git else ())]
    return any(real.is_relative_to(os.path.realpath(folder)) for folder in folders)


def _explain(damages: Mapping[Path, Damage], project: Project, quarantine: Quarantine, who: str) -> str:
    listing = ", ".join(f"{_shown(path, project)} ({damage})" for path, damage in damages.items())
    is_undone = all(damage.is_undone for damage in damages.values())
    undone = "it was put back" if is_undone else "not all of it could be put back"
    folders = " and ".join(_shown(folder, project) for folder in quarantine.folders)
    where = f"; what was there is kept in {folders}" if folders else ""
    return f"{who} changed protected files; {undone}: {listing}{where}; check what {BUILD_SCRIPT} runs"


def _shown(path: Path, project: Project) -> str:
    return shown(str(path.relative_to(project.root) if path.is_relative_to(project.root) else path))


def _result(ending: Ending, *, in_sandbox: bool) -> BuildResult:
    """Return how a build ended. Raises BuildError for one that never began."""
    if ending.timed_out:
        return BuildResult(None, None, True, ending.seconds, ending.output_bytes)
    code = ending.returncode or 0
    if not ending.was_executed:
        said = shown(ending.head.decode("utf-8", "replace").strip())
        if code < 0:
            raise BuildError(f"{BUILD_SCRIPT} killed its own sandbox (bubblewrap), so its result is unknown")
        if said.startswith("bwrap: execvp"):
            raise BuildError(f"{BUILD_SCRIPT} cannot be started in the sandbox: {said}")
        raise BuildError(f"the sandbox cannot be set up: {said}; fix it, or use ", Named("sandbox", "off"))
    if in_sandbox and code - FIRST_SHELL_SIGNAL_CODE in signal.valid_signals():
        code = FIRST_SHELL_SIGNAL_CODE - code
    exit_code, number = (code, None) if code >= 0 else (None, -code)
    return BuildResult(exit_code, number, False, ending.seconds, ending.output_bytes)
