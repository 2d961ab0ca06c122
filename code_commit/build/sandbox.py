"""The sandboxes that bubblewrap (bwrap) builds around build.sh: `guard` and `strict`.

In `guard` agent-config and the user's own settings are empty folders, and the protected files are read-only. `strict`
also takes the network, the other processes, every home folder but for the tools in it, and the right to write anywhere
but in the project.
"""

import errno
import os
import pwd
import re
import signal
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Literal, NamedTuple

from code_commit.build.devices import device_mounts
from code_commit.build.process import Started, end_guardian, start_process
from code_commit.errors import Named, NotSetUpError
from code_commit.files import read_regular_file, write_all
from code_commit.headers import secret_files
from code_commit.paths.protected import protected_from_build, watched_from_build
from code_commit.project import AGENT_CONFIG, Project, UserFolder, find_user_folder
from code_commit.regex import regex
from code_commit.settings import Settings
from code_commit.terminal import shown
from code_commit.trust import find_program, outside_environment, search_outside

_HOME_TOOLS = """
    .asdf .bun/bin .bun/install .cabal/bin .cabal/packages .cabal/store .cargo/bin .cargo/config.toml .cargo/env
    .cargo/git .cargo/registry .deno/bin .dotnet .elan .fnm .ghcup .gitconfig .gradle/caches .gradle/wrapper .jdks
    .juliaup .julia/artifacts .julia/packages .local/bin .local/lib .local/pipx .local/share/fnm .local/share/mise
    .local/share/pipx .local/share/pnpm .local/share/uv .m2/repository .m2/wrapper .npm/_cacache .nuget/packages .nvm
    .opam .pyenv .rbenv .rustup .rvm .sdkman .stack/programs .virtualenvs .volta .config/git/attributes
    .config/git/config .config/git/ignore .linuxbrew anaconda3 bin go mambaforge miniconda3 miniforge3
"""
HOME_TOOLS = tuple(_HOME_TOOLS.split())
"""The rest of the home folder in `strict`, read-only: installed programs, their packages, git's settings; no login."""

_GIT_LOGIN = regex(rb"(?im)^\s*\[\s*(?:url|http|credential|sendemail|imap|github|gitlab)\b")

CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID")
"""Root keeps these for package managers. None of them can undo or bypass the mounts, unlike
SYS_ADMIN, SYS_PTRACE (another process's /proc/PID/root), MKNOD, SYS_RAWIO, DAC_READ_SEARCH and BPF."""

PRIVATE_FOLDERS = ("/tmp", "/var/tmp", "/run", "/dev/shm")  # noqa: S108 - their content is not the build's

_GO = b"go"  # a byte for each time that bubblewrap waits at the gate
_GUARD = 'if read -r first; then read -r _; kill -KILL "$first" "-$first"; fi; kill -KILL 0'
_KERNEL_SETTINGS = tuple(
    word for path in ("/proc/sys", "/proc/sysrq-trigger") for word in ("--ro-bind-try", path, path)
)  # Root may write them with no capability, and some of them (core_pattern) run a program outside

_REMEDY = (
    "Debian and Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap; Ubuntu 24.04 and later also needs an "
    "AppArmor profile with `userns,` for bwrap (or sysctl kernel.apparmor_restrict_unprivileged_userns=0); in a "
    "container: run it with --security-opt seccomp=unconfined and --security-opt apparmor=unconfined, or as "
    "--privileged; or use"
)


class Sandbox(NamedTuple):
    """A sandbox that was tried and works on this machine."""

    mode: Literal["guard", "strict"]
    program: str
    network: bool
    caches: tuple[Path, ...]
    disables_namespaces: bool
    hidden: tuple[Path, ...] = ()

    def start(
        self, argv: Sequence[str], environment: Mapping[str, str], project: Project, protected: Sequence[Path]
    ) -> Started:
        """Start a command in the sandbox. If that fails, bubblewrap prints the reason and ends. Raises OSError.

        Bubblewrap waits at the gate until root's sandbox has its users, and again before it closes the gate and
        executes the command. The guardian holds the gate too, so that the end of the tool does not open it.
        """
        status, status_end = _pipe()
        gate, opener = _pipe()
        with status_end, gate, opener, open(os.devnull, "wb") as info, ExitStack() as stack:  # noqa: PTH123 - a descriptor is wanted
            passed = [status_end.fileno(), gate.fileno()]
            words = [self.program, "--json-status-fd", str(passed[0]), "--block-fd", str(passed[1])]
            if os.geteuid() == 0:
                passed.append(info.fileno())  # --userns-block-fd asks for it
                words += ["--unshare-user", "--userns-block-fd", str(passed[1]), "--info-fd", str(passed[2])]
            outside = search_outside(environment, project.root)  # the libraries that bwrap itself is loaded with
            for name in (name for name in outside if outside[name] != environment[name]):
                words += ["--setenv", name, environment[name]]
            options = stack.enter_context(_kept_in_memory(self.options(project, protected, environment)))
            passed.append(options)  # on its command line they would name the project to whoever looks for that
            words += ["--args", str(options), "--", *argv]
            guardian = None
            try:
                guardian = _start_guardian(opener.fileno())
                process = start_process(words, outside, project.root, passed, group=guardian.pid)
            except OSError:
                status.close()
                end_guardian(guardian)
                raise
            started = Started(process, status=status, guardian=guardian)
            status_end.close()
            if said := re.search(rb'"child-pid": (\d+)', status.readline()):
                self._let_in(started, int(said[1]), project.root)
                opener.write(_GO)
        return started

    def _let_in(self, started: Started, first: int, root: Path) -> None:
        """Set up the sandbox, held at its gate, from outside; `first` is the first process in it."""
        try:
            if os.geteuid() == 0:
                _map_users(first)
                if self.mode == "strict":
                    _forbid_namespaces(first, root)
        except OSError:
            for process in (first, started.process.pid):  # the first waits for bubblewrap, and would for ever
                os.kill(process, signal.SIGKILL)
            started.process.wait()
            started.close()
            raise
        started.group = first if self.mode == "guard" else None
        if started.guardian and started.guardian.stdin:
            started.guardian.stdin.write(b"%d\n" % first)
            started.guardian.stdin.flush()

    def options(self, project: Project, protected: Sequence[Path], environment: Mapping[str, str]) -> Iterator[str]:
        """Yield the options of bwrap, without the program to run."""
        yield "--new-session"
        homes = self._homes(project, environment) if self.mode == "strict" else []
        yield from _strict(self, homes) if self.mode == "strict" else _guard()
        user = find_user_folder(project, environment)
        hidden = os.path.realpath(user.path) if user.path and user.path.is_dir() else ""
        yield from ("--tmpfs", hidden) if hidden else ()
        yield from _bind("--bind", project.root)  # a mount point cannot be renamed
        git = project.git
        for folder in dict.fromkeys((git.common_dir, git.git_dir) if git else ()):
            if folder.is_dir():
                yield from _bind("--ro-bind" if self.mode == "strict" else "--bind", folder)
        for file in self._unreadable(project, user):
            yield from ("--ro-bind", os.devnull, os.path.realpath(file))
        for path in (*protected, *watched_from_build(project)):
            if not path.is_symlink() and (path.is_file() or path.is_dir()):  # a bind would go to a link's target
                yield from _bind("--ro-bind", path)
        if project.agent_config.is_dir():
            empty = os.path.realpath(project.agent_config)
            yield from ("--tmpfs", empty, "--remount-ro", empty)
        yield from ("--remount-ro", hidden) if hidden else ()
        for home in _outermost(homes):
            yield from ("--remount-ro", str(home))  # behind all that is mounted in it
        if os.geteuid() == 0:
            yield from ("--cap-drop", "ALL", *(word for name in CAPABILITIES for word in ("--cap-add", f"CAP_{name}")))
        yield from ("--chdir", str(project.root))

    def _unreadable(self, project: Project, user: UserFolder) -> list[Path]:
        """Return the files with secrets that lie elsewhere, also by links from the folders that are hidden whole."""
        own = user.path.iterdir() if user.path and user.path.is_dir() else ()
        linked = [*project.agent_config.glob("*-key.txt"), *(path for path in own if path.name not in user.linked)]
        links = [path for path in linked if path.is_symlink()]
        return [path for path in sorted({*links, *self.hidden}) if path.is_file()]

    def _homes(self, project: Project, environment: Mapping[str, str]) -> list[Path]:
        """Return the folders to empty: the user's homes, /root, /home and those on PATH in it, no writable ones."""
        names = [environment.get("HOME", ""), "/root", "/home"]  # HOME may differ from the user's entry, as in CI
        with suppress(KeyError):
            names.append(pwd.getpwuid(os.getuid()).pw_dir)
        folders = (Path(name).parts for name in environment.get("PATH", "").split(os.pathsep))
        names += [str(Path(*parts[:3])) for parts in folders if parts[:2] == (os.sep, "home")]
        homes = dict.fromkeys(Path(os.path.realpath(name)) for name in names if name)
        writable = (project.root, *self.caches)
        return [
            home
            for home in homes
            if home != Path(os.sep)
            and os.path.isdir(home)  # noqa: PTH112 - False for what cannot be looked at
            and not any(map(home.is_relative_to, writable))
        ]


def _outermost(folders: Sequence[Path]) -> list[Path]:
    return [folder for folder in folders if not any(above in folders for above in folder.parents)]


@contextmanager
def _kept_in_memory(words: Iterable[str]) -> Iterator[int]:
    """Yield a descriptor from which the words can be read, each with a NUL after it. Raises OSError."""
    descriptor = os.memfd_create("options")
    try:
        write_all(descriptor, b"".join(os.fsencode(f"{word}\0") for word in words))
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


def _pipe() -> tuple[FileIO, FileIO]:
    reading, writing = os.pipe()
    return FileIO(reading), FileIO(writing, "w")


def _map_users(pid: int) -> None:
    """Map every user to itself in the process's user namespace, as root alone can. Raises OSError.

    Root's capabilities then count for files, but not for processes outside: their /proc/PID/root leads around every
    mount, and cannot be entered from another user namespace (ptrace_may_access of the kernel).
    """
    for table in ("uid_map", "gid_map"):
        ranges = [line.split() for line in Path(f"/proc/self/{table}").read_text("ascii").splitlines()]
        identity = "".join(f"{first} {first} {count}\n" for first, _, count in ranges)
        Path(f"/proc/{pid}/{table}").write_text(identity, "ascii")


def _forbid_namespaces(pid: int, root: Path) -> None:
    """Allow no user namespace below the process's, as bubblewrap's own --disable-userns does. Raises OSError."""
    script = "echo 0 >/proc/sys/user/max_user_namespaces"
    nsenter = find_program("nsenter", root) or "/usr/bin/nsenter"
    words = [nsenter, f"--user=/proc/{pid}/ns/user", "/bin/sh", "-c", script]
    if subprocess.run(words, env={}, capture_output=True, check=False).returncode != 0:
        raise OSError(errno.EPERM, "further user namespaces cannot be forbidden")


def _start_guardian(gate: int) -> subprocess.Popen[bytes]:
    """Start the guardian, which kills the build when its input ends: when the tool is gone, be it by SIGKILL.

    Bubblewrap's --die-with-parent would end all with build.sh, the `tee` included that has its last output.
    """
    words, quiet = ["/bin/sh", "-c", _GUARD], subprocess.DEVNULL
    return subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, env={}, process_group=0, pass_fds=[gate]
    )


def _guard() -> Iterator[str]:
    yield from ("--dev-bind", "/", "/")
    if os.geteuid() == 0:
        yield from ("--dev", "/dev", *device_mounts())
        yield from ("--ro-bind", "/sys", "/sys", *_KERNEL_SETTINGS)


def _strict(sandbox: Sandbox, homes: Sequence[Path]) -> Iterator[str]:
    yield from ("--unshare-pid", "--unshare-ipc", "--unshare-uts")
    if not sandbox.network:
        yield "--unshare-net"
    if sandbox.disables_namespaces:
        yield from ("--unshare-user", "--disable-userns")
    yield from ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
    yield from _KERNEL_SETTINGS if os.geteuid() == 0 else ()
    for private in dict.fromkeys(os.path.realpath(path) for path in PRIVATE_FOLDERS):
        if Path(private).is_dir():
            yield from ("--perms", "1777", "--tmpfs", private)
    resolver = Path(os.path.realpath("/etc/resolv.conf"))
    if sandbox.network and resolver.is_relative_to("/run"):
        yield from ("--ro-bind-try", str(resolver), str(resolver))
    yield from _empty_homes(homes)
    for cache in sandbox.caches:
        yield from ("--bind-try", str(cache), str(cache))
    yield from ("--setenv", "TMPDIR", "/tmp")  # noqa: S108 - the private one


def _empty_homes(homes: Sequence[Path]) -> Iterator[str]:
    """Empty the homes, except for their tools, which stay in their places."""
    for home in _outermost(homes):
        yield from ("--tmpfs", str(home))
    for home in homes:
        yield from ("--dir", str(home))
        for path in (home / name for name in HOME_TOOLS):
            if os.path.exists(path) and not _holds_login(path):  # noqa: PTH110 - False for what cannot be looked at
                yield from ("--ro-bind", os.path.realpath(path), str(path))


def _holds_login(path: Path) -> bool:
    """Tell whether a file of git's settings may hold a login, or cannot be read: a token in an address or a header."""
    if path.name not in (".gitconfig", "config"):
        return False
    try:
        return _GIT_LOGIN.search(read_regular_file(path)) is not None
    except OSError:
        return True


def _bind(kind: str, path: Path) -> tuple[str, str, str]:
    real = os.path.realpath(path)  # bwrap mounts on no path that leads through a link
    return kind, real, real


def choose_sandbox(mode: str, project: Project, settings: Settings) -> tuple[Sandbox | None, str | None]:
    """Return a sandbox that works, and a line for the user. Raises NotSetUpError where the mode cannot be set up."""
    if mode == "off":
        return None, None
    problem: str | None = "bubblewrap (bwrap, Linux only) is not installed"
    if program := find_program("bwrap", project.root):
        sandbox = Sandbox(
            mode="strict" if mode == "strict" else "guard",
            program=program,
            network=settings.sandbox_network,
            caches=tuple(map(_cache_folder, settings.sandbox_caches)),
            disables_namespaces=mode == "strict" and os.geteuid() != 0,
            hidden=tuple(secret_files(settings.headers, settings.client_key)),
        )
        problem = _try_out(sandbox, project)
        if problem and sandbox.disables_namespaces and "--disable-userns" in problem:  # bubblewrap before 0.8
            sandbox = sandbox._replace(disables_namespaces=False)
            problem = _try_out(sandbox, project)
        if problem is None:
            return sandbox, None
    if mode == "auto":
        return None, f"no sandbox: {problem}; build.sh can read {AGENT_CONFIG} and write the protected files"
    raise NotSetUpError(Named("sandbox", mode), f" cannot be set up: {problem}. {_REMEDY} ", Named("sandbox", "off"))


def _cache_folder(name: str) -> Path:
    try:
        return Path(os.path.realpath(Path(name).expanduser()))
    except (RuntimeError, ValueError):
        raise NotSetUpError(f"sandbox_caches in config.toml: {shown(name)} is not the name of a folder") from None


def _try_out(sandbox: Sandbox, project: Project) -> str | None:
    """Run `true` in the sandbox; return the reason of a failure."""
    true = find_program("true", project.root) or "/bin/true"
    try:
        environment = outside_environment(project.root)
        started = sandbox.start([true], environment, project, protected_from_build(project))
    except OSError as error:
        return f"{sandbox.program} cannot be run: {error.strerror}"
    output, _ = started.process.communicate()
    started.close()
    if started.process.returncode == 0:
        return None
    said = output.decode("utf-8", "replace").strip().splitlines()
    return said[-1] if said else f"{sandbox.program} ended with exit code {started.process.returncode}"
