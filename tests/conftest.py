"""What every test may ask for: a project in a temporary folder, and the command as its user calls it."""

import contextlib
import fcntl
import functools
import gc
import importlib
import os
import re
import shutil
import signal
import subprocess
import time
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count, repeat
from pathlib import Path

import hypothesis
import pytest
from command import CODE_COMMIT, Run, Start, git
from forked_command import ForkedCommand, ForkedProcess
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from code_commit.build import choose_sandbox
from code_commit.llm.endpoint import Timing
from code_commit.project import find_project
from code_commit.runs.record import load_run_record
from code_commit.settings import Settings

pytest.register_assert_rewrite("accounts", "stories", "story_log")

NEEDED_VARIABLES = ("PATH", "HOME", "LANG", "COVERAGE_PROCESS_START", "COVERAGE_FILE")
PERSONAL = re.compile(
    r"(CODE_COMMIT|GIT|LC|XDG)_.*|.*(_API_KEY|_proxy|_PROXY)"
    r"|CI|COLUMNS|EDITOR|LANGUAGE|LESS|LINES|LV|NO_COLOR|PAGER|PYTHONDONTWRITEBYTECODE|PYTHONUNBUFFERED|TERM|VISUAL"
    r"|SSL_CERT_(DIR|FILE)"
)
"""The variables by which a user, a terminal or a CI job tells programs how to behave."""
GET_FLAGS, SET_FLAGS, TOP_OF_HIERARCHY = 0x80086601, 0x40086602, 0x20000  # of <linux/fs.h>, which Python has not
ZONE = "<+0545>-5:45"  # neither UTC nor whole hours from it: what takes local time for UTC is seen everywhere
# git 2.55 keeps a repository in order after a commit, in the background
GIT_CONFIG = "[user]\n\tname = Tester\n\temail = tester@example.org\n[init]\n\tdefaultBranch = main\n[maintenance]\n\tauto = false\n"

TOGETHER = {
    "a browser": ("tests/commands/browser/",),
    "a cluster": tuple(f"tests/fleet/test_cluster.py::test_{word}_" for word in ("an", "no")),
    "another cluster": ("tests/fleet/test_cluster.py",),  # on one cluster they would be the longest chain
    "a third cluster": tuple(
        f"tests/fleet/test_{name}.py" for name in ("fleet", "fleet_docs", "history", "unfinished")
    ),
    "what a build can do": ("tests/build/test_sandbox.py::test_a_probe_",),
    "the syntax of the package": ("tests/test_house.py",),
    "a wheel": ("tests/test_help.py::test_the_manual_",),
    "a client of MCP": ("tests/commands/test_mcp.py",),
    "the vendors' packages": tuple(f"tests/llm/test_{name}.py" for name in ("fake_server", "models_page", "requests")),
    "llmock": ("tests/llm/test_llmock.py",),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the slow tests too")
    parser.addoption("--whole", action="store_true", help="run them and the long sweeps whole, not a sample of them")
    parser.addoption("--new-prompts", action="store_true", help="write tests/golden_prompts.txt anew")


def pytest_configure(config: pytest.Config) -> None:
    """Let generated examples be the same each time, however slow the machine is; with --whole they are new ones.

    A shell that starts the tests with `&`, and nohup, let them ignore signals; the commands under test must not. Its
    umask is not theirs either.
    """
    os.umask(0o022)
    gc.disable()  # until all is collected
    slow = hypothesis.HealthCheck.too_slow
    hypothesis.settings.register_profile(
        "any machine", deadline=None, derandomize=not config.getoption("--whole"), suppress_health_check=[slow]
    )
    hypothesis.settings.load_profile("any machine")
    default = signal.SIG_DFL
    actions = {signal.SIGINT: signal.default_int_handler, signal.SIGQUIT: default, signal.SIGHUP: default}
    for number, action in actions.items():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, action)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Import the test modules from another one on in each worker: what one of them has compiled the others only read.

    In a fresh clone each of them would compile all, for four seconds.
    """
    worker = getattr(session.config, "workerinput", None)
    if worker and session.config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        found = sorted(Path(__file__).parent.rglob("test_*.py"))
        files = [file for file in found if "scenarios" not in file.parts]
        first = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
        for file in files[first:] + files[:first]:
            with contextlib.suppress(Exception, pytest.skip.Exception):  # the collection tells
                importlib.import_module(".".join(file.relative_to(session.config.rootpath).with_suffix("").parts))


def pytest_collection_finish() -> None:
    """What the tests are made of stays until the end; looking through it for garbage took a second each time."""
    gc.freeze()
    gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    whole = item.config.getoption("--whole")
    if item.get_closest_marker("sweep") and not whole:
        pytest.skip("part of the long sweep")
    if item.get_closest_marker("slow") and not whole and not item.config.getoption("--slow"):
        pytest.skip("slow: --slow runs it")
    for mark in item.iter_markers("root"):
        if os.geteuid() != 0:
            pytest.skip("only root can do that")
        if "mount" in mark.args and not can_mount():
            pytest.skip("a mount namespace cannot be made here")


@functools.cache
def can_mount() -> bool:
    mount = ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"]
    return bool(shutil.which("unshare")) and subprocess.run(mount, capture_output=True, check=False).returncode == 0


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Give the tests that share something dear to one worker, which makes it once; any other test goes to any worker."""

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return next((name for name, files in TOGETHER.items() if nodeid.startswith(files)), nodeid)

        def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
            """Forget a scope that is done: each time, all that a worker has are counted."""
            super().mark_test_complete(node, item_index, duration)
            scope = self._split_scope(self.registered_collections[node][item_index])
            if all(self.assigned_work[node][scope].values()):
                del self.assigned_work[node][scope]

    return Scheduling(config, log)


def pytest_xdist_auto_num_workers() -> int:
    """Return how many workers `-n auto` starts: two more than processors, since tests also wait for others."""
    return (os.cpu_count() or 1) + 2


@pytest.fixture
def whole(request: pytest.FixtureRequest) -> bool:
    """Whether the long sweeps run whole."""
    return bool(request.config.getoption("--whole"))


@pytest.fixture(scope="session", autouse=True)
def plain_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], None]]:
    """No key, no setting, no git configuration, no locale and no time zone of whoever runs the tests reaches them.

    The value sees to it that HOME is a folder with git's configuration alone: a new one where a test changed the last.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)  # as in ForkedCommand
        for name in filter(PERSONAL.fullmatch, list(os.environ)):
            patch.delenv(name)
        patch.setenv("LANG", "C.UTF-8")
        patch.setenv("TZ", ZONE)
        time.tzset()

        def clean_home() -> None:
            config = Path(os.environ["HOME"], ".gitconfig")
            if list(config.parent.iterdir()) != [config] or config.is_symlink() or config.read_text() != GIT_CONFIG:
                new_home()

        def new_home() -> None:
            home = tmp_path_factory.mktemp("home")
            (home / ".gitconfig").write_text(GIT_CONFIG)
            patch.setenv("HOME", str(home))

        new_home()
        yield clean_home


@pytest.fixture(scope="session")
def spread(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let ext4 lay each test's folder where it has fewest folders, and leave an empty one there.

    Before ext4 takes an inode, it looks at each one around that was freed in the last minutes. The tests free so many
    that this took an eighth of their processor time. Other file systems refuse the flag.
    """
    base = tmp_path_factory.getbasetemp()
    descriptor = os.open(base, os.O_RDONLY)
    try:
        flags = array("I", fcntl.ioctl(descriptor, GET_FLAGS, bytes(8)))
        flags[0] |= TOP_OF_HIERARCHY
        fcntl.ioctl(descriptor, SET_FLAGS, flags)
    except OSError:
        return repeat(None)
    finally:
        os.close(descriptor)
    return ((base / f"spread-{number}").mkdir() for number in count())


@pytest.fixture
def tmp_path(tmp_path: Path, spread: Iterator[None]) -> Path:
    next(spread)
    return tmp_path


@pytest.fixture(autouse=True)
def home(plain_environment: Callable[[], None]) -> None:
    plain_environment()


@pytest.fixture(scope="session")
def fresh_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project that every test gets a copy of, which takes an eighth of the time that git takes."""
    root = tmp_path_factory.mktemp("fresh") / "project"
    root.mkdir()
    git(root, "init", "-q")
    (root / ".gitignore").write_text("/agent-config\n/target\n")
    (root / "build.sh").write_text("#!/bin/sh\ncat ok.txt && grep -q '^ok$' ok.txt\n")
    (root / "build.sh").chmod(0o755)
    (root / "ok.txt").write_text("not yet\n")
    config = root / "agent-config"
    config.mkdir(mode=0o700)
    (config / "query.txt").write_text("Make ok.txt say ok.\n")
    (config / "codeRollup.txt").write_text("--- ok.txt ---\nnot yet\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "start")
    git(root, "repack", "-adqn")
    for unneeded in ("branches", "hooks", "logs", "objects/info", "refs/tags"):  # most of what each test would copy
        shutil.rmtree(root / ".git" / unneeded, ignore_errors=True)
    (root / ".git/hooks").mkdir()
    return root


@pytest.fixture
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause before a request is repeated, and none before a job is polled."""
    defaults = Timing()._replace(first_backoff=0.0, first_poll=0.0)
    monkeypatch.setattr(Timing.__new__, "__defaults__", tuple(defaults))


@pytest.fixture
def user() -> Path:
    """The folder of the user's own settings, in the home of the test."""
    folder = Path(os.environ["HOME"], ".config", "code-commit")
    folder.mkdir(parents=True, mode=0o700)
    return folder


@pytest.fixture
def project_folder(tmp_path: Path, fresh_project: Path) -> Path:
    """A git work tree that is set up as the specification describes it; build.sh passes when ok.txt says ok."""
    return shutil.copytree(fresh_project, tmp_path / "project", symlinks=True)


@pytest.fixture(scope="session")
def forked_command() -> Iterator[ForkedCommand]:
    with contextlib.closing(ForkedCommand(needed_environment())) as command:
        yield command


@pytest.fixture(scope="session")
def needs_bwrap(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip where no sandbox can be set up, and say why."""
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    folder = tmp_path_factory.mktemp("probe")
    sandbox, line = choose_sandbox("auto", find_project(folder), Settings())
    if sandbox is None:
        pytest.skip(f"bubblewrap does not work here: {line}")


def needed_environment() -> dict[str, str]:
    """Return the variables of a command, with a PATH of folders that may be entered: a shell's words depend on that."""
    found = {name: os.environ[name] for name in NEEDED_VARIABLES if name in os.environ}
    folders = found.get("PATH", os.defpath).split(os.pathsep)
    return found | {"PATH": os.pathsep.join(folder for folder in folders if os.access(folder, os.X_OK))}


@pytest.fixture
def run_code_commit(forked_command: ForkedCommand) -> Run:
    """Run the command in a folder; `env` adds to the few variables that it is given.

    It is forked from a process that has imported it, unless Python's own start may matter, or `forked` says no.
    """

    def run(
        folder: Path,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        stdin: str = "",
        timeout: float = 300,
        forked: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        environment = needed_environment() | dict(env or {})
        start = forked_command.run if forked and forked_command.can_run(environment) else run_anew
        done = start(arguments, folder, environment, stdin.encode(), timeout)
        for record in folder.glob("agent-config/logs/*/run.json"):
            load_run_record(record.read_bytes())  # every one that a test produces has the shape of the schema
        return done

    return run


@pytest.fixture
def start_code_commit(forked_command: ForkedCommand) -> Iterator[Start]:
    """Start the command in a folder, forked as by `run_code_commit`; what is left of it at the end is killed.

    The Python text `before` is executed in its process first.
    """
    with contextlib.ExitStack() as stack:

        def start(folder: Path, *arguments: str, before: str = "") -> ForkedProcess:
            words = ["code-commit", *arguments]
            process = forked_command.start(words, folder, needed_environment(), before=before)
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield start


def run_anew(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], stdin: bytes, timeout: float
) -> subprocess.CompletedProcess[str]:
    words = [*CODE_COMMIT, *arguments]
    done = subprocess.run(
        words, cwd=folder, env=environment, input=stdin, capture_output=True, timeout=timeout, check=False
    )
    stdout, stderr = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    return subprocess.CompletedProcess(words, done.returncode, stdout, stderr)
