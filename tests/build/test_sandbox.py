"""What a build can do in each sandbox, and cannot, as root and as another user: a table of attempts with verdicts.

An attempt is a line of bash that succeeds when it got what it wanted. The column `off` shows that the attempt is one:
where it fails there too, nobody or nothing but the sandbox stands in its way, or it needs a sandbox to mean anything.
"""

import contextlib
import ctypes  # noqa: F401 - imported here for the child that cannot read where it is installed
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from build_watch import as_user, run_build
from command import CODE_COMMIT, recorded, wait_for

from code_commit.build import build_environment, choose_sandbox, harden_process
from code_commit.build.sandbox import _empty_homes
from code_commit.project import find_project
from code_commit.settings import Settings

NOBODY = 65534
STRANGER = 12345
KEY = "sk-test-0123456789abcdef"

READ_KEY = "grep -qs 'sk-tes[t]' {}/agent-config/gemini-key.txt"
CONNECT = "perl -MSocket -e 'socket(S,AF_UNIX,SOCK_STREAM,0)||exit 3; connect(S,pack_sockaddr_un({}))||exit 1'"
PTRACE_SEIZE = "perl -e 'exit(syscall(101,0x4206,0+$ENV{{{}}},0,0)==0?0:1)'"  # of x86-64
BY_HANDLE = """perl -e '
$name = ".gitignore"; $handle = pack("Ii", 120, 0) . ("\0" x 120); $mount = pack("i", 0);
syscall(303, -100, $name, $handle, $mount, 0) == 0 || exit 3;
open(FOLDER, "."); exit(syscall(304, fileno(FOLDER), $handle, 0) >= 0 ? 0 : 1)'
"""
ALONE = "unshare --user --map-root-user --mount sh -c '{}'"

# name: (attempt, verdicts); verdicts: two letters each for off, guard, strict, of root and of another user;
# o = open, s = shut, - = not asked
PROBES = {
    # the protected files
    "append to .gitignore": (": >> .gitignore", "oo ss ss"),
    "replace .gitignore": ("echo x > g && mv -f g .gitignore", "oo ss ss"),
    "delete .gitignore": ("rm -f .gitignore", "oo ss ss"),
    "rename .gitignore": ("mv .gitignore g", "oo ss ss"),
    "chmod .gitignore": ("chmod 777 .gitignore", "oo ss ss"),
    "link over .gitignore": ("ln -sf /etc/passwd .gitignore", "oo ss ss"),
    "truncate .gitignore by a hard link": ("ln .gitignore g && : > g", "oo ss ss"),
    "write build.sh": (": >> build.sh", "oo ss ss"),
    "chmod build.sh": ("chmod 777 build.sh", "oo ss ss"),
    "rename build.sh": ("mv build.sh b", "oo ss ss"),
    "write codeRollup.sh": (": >> codeRollup.sh", "oo ss ss"),
    "write LLMInstructions.md": (": >> LLMInstructions.md", "oo ss ss"),
    "write UserSpecification.md": (": >> UserSpecification.md", "oo ss ss"),
    "write docs/UserSpecification.md": (": >> docs/UserSpecification.md", "oo ss ss"),
    "add a hook": (": > .git/hooks/pre-commit", "oo ss ss"),
    "rename the hooks": ("mv .git/hooks .git/h", "oo ss ss"),
    "write .git/config": (": >> .git/config", "oo ss ss"),
    "git config": ("git config core.fsmonitor ./evil", "oo ss ss"),
    "write .git/info/exclude": (": >> .git/info/exclude", "oo ss ss"),
    "write .git/info/attributes": (": > .git/info/attributes", "oo ss ss"),
    "rename .git/info": ("mv .git/info .git/i", "oo ss ss"),
    "rename .git": ("mv .git g", "oo ss ss"),
    "rename the project": ("mv $PWD $PWD.away && mv $PWD.away $PWD", "oo ss ss"),
    # the key
    "read the key": (READ_KEY.format("."), "oo ss ss"),
    "look for the key in the project": ("grep -rqs --exclude=build.sh 'sk-tes[t]' .", "oo ss ss"),
    "read the key where a link leads": ("grep -qs 'sk-tes[t]' $HOME/keys/openai", "oo ss ss"),
    "read the key where a link leads in the project": ("grep -qs 'sk-tes[t]' docs/key", "oo ss ss"),
    "read the key where a link leads into ~/.ssh": ("grep -qs 'sk-tes[t]' $HOME/.ssh/key", "oo ss ss"),
    "list agent-config": ('[ -n "$(ls -A agent-config)" ]', "oo ss ss"),
    "hard link the key": ("ln agent-config/gemini-key.txt k", "oo ss ss"),
    "write into agent-config": (": > agent-config/x", "oo ss ss"),
    "rename agent-config": ("mv agent-config a", "oo ss ss"),
    "remove agent-config": ("rm -r agent-config", "oo ss ss"),
    "read the key by the root of a process": (READ_KEY.format("/proc/[0-9]*/root/$PWD"), "oo ss ss"),
    "read the key by the root of its parent": (READ_KEY.format("/proc/$KEEPER/root/$PWD"), "os ss ss"),
    "read the key by the folder of a process": (READ_KEY.format("/proc/$VICTIM/cwd"), "oo ss ss"),
    "read the key by a descriptor of a process": ("grep -qs 'sk-tes[t]' /proc/$VICTIM/fd/0", "oo ss ss"),
    "read the key as another user": (
        "setpriv --reuid 12345 --regid 12345 --clear-groups --inh-caps +dac_override --ambient-caps +dac_override "
        + READ_KEY.format("/proc/$STRANGER/root/$PWD"),
        "o- s- s-",
    ),
    "read the key by its handle": (BY_HANDLE, "os ss ss"),
    "read the environment of the tool": ("grep -qs . /proc/$TOOL/environ", "os ss ss"),
    "open the memory of the tool": ("exec 3< /proc/$TOOL/mem", "os ss ss"),
    "trace the tool": (PTRACE_SEIZE.format("TOOL"), "os ss ss"),
    "trace another process": (PTRACE_SEIZE.format("VICTIM"), "oo ss ss"),
    "inherit a descriptor": ("[ $(ls /proc/self/fd | wc -l) -gt 4 ]", "ss ss ss"),  # the fourth is the folder's own
    "find the key in the environment": ("env | grep -q 'sk-tes[t]'", "ss ss ss"),
    # the mounts
    "umount .gitignore": ("umount .gitignore", "-- ss ss"),
    "umount agent-config": ("umount -l agent-config", "-- ss ss"),
    "remount .gitignore": ("mount -o remount,bind,rw .gitignore", "-- ss ss"),
    "remount the system": ("mount -o remount,bind,rw /", "os ss ss"),
    "mount something": ("m=m$$; mkdir $m && mount -t tmpfs x $m && umount $m", "os ss ss"),
    "look below by a bind": (
        "m=m$$; mkdir $m && mount --bind . $m && " + READ_KEY.format("$m") + "; r=$?; umount $m; exit $r",
        "os ss ss",
    ),
    "umount in a new namespace": (
        ALONE.format("umount agent-config; " + READ_KEY.format(".").replace("'", '"')),
        "-- ss ss",
    ),
    "bind in a new namespace": (
        ALONE.format("m=m$$; mkdir $m; mount --bind . $m; " + READ_KEY.format("$m").replace("'", '"')),
        "-- ss ss",
    ),
    "uncover in a new namespace": (
        ALONE.format(
            "m=m$$; mkdir $m; mount --rbind . $m; umount -l $m/agent-config; " + READ_KEY.format("$m").replace("'", '"')
        ),
        "-- ss ss",
    ),
    "remount in a new namespace": (ALONE.format("mount -o remount,bind,rw .gitignore; : >> .gitignore"), "-- ss ss"),
    "make a user namespace": ("unshare --user true", "oo oo ss"),
    "make a device": ("mknod d b 7 0", "os ss ss"),
    "read a disk": ("for d in /dev/*; do [ -b $d ] && head -c 1 $d > /dev/null && exit 0; done; exit 1", "os ss ss"),
    "write a kernel setting": ("exec 3<> /proc/sys/kernel/core_pattern", "os ss ss"),
    "write to /sys": (
        'exec 3<> "$(find /sys/kernel /sys/module -maxdepth 3 -type f -perm -200 | head -n 1)"',
        "os ss ss",
    ),
    # the rest of the machine, which guard leaves as it is
    "signal the tool": ("kill -0 $TOOL", "oo oo ss"),
    "see other processes": ("[ -e /proc/$VICTIM ]", "oo oo ss"),
    "TCP to this machine": ("exec 3<> /dev/tcp/127.0.0.1/$PORT", "oo oo ss"),
    "an abstract socket": (CONNECT.format('"\\0$ENV{ABSTRACT}"'), "oo oo ss"),
    "a socket in /tmp": (CONNECT.format('"$ENV{OUTSIDE}/socket"'), "oo oo ss"),
    "write to /tmp": (": > $OUTSIDE/x", "oo oo ss"),
    "see what is in /tmp": ("[ -e $OUTSIDE ]", "oo oo ss"),
    "see what is in /run": ("[ -e /run/$RUN_ENTRY ]", "oo oo ss"),
    "write to the home folder": (": > $HOME/x && [ -e $HOME/plain ]", "oo oo ss"),
    "write to /usr": (": > /usr/.probe && rm /usr/.probe", "os os ss"),
    "read ~/.ssh": ("grep -q secret $HOME/.ssh/id", "oo oo ss"),
    "read ~/.netrc": ("grep -q secret $HOME/.netrc", "oo oo ss"),
    "read ~/.config/gh": ("grep -q secret $HOME/.config/gh/hosts.yml", "oo oo ss"),
    "read ~/.pgpass": ("grep -q secret $HOME/.pgpass", "oo oo ss"),
    "read ~/.config/unheard-of": ("grep -q secret $HOME/.config/unheard-of", "oo oo ss"),
    "read ~/.cargo/credentials.toml": ("grep -q secret $HOME/.cargo/credentials.toml", "oo oo ss"),
    "read ~/.m2/settings.xml": ("grep -q secret $HOME/.m2/settings.xml", "oo oo ss"),
    "see what is in /root": ("[ -e $IN_ROOT/x ]", "os os ss"),
    "see what is in /home": ("[ -e $IN_HOME/x ]", "oo oo ss"),
    "write to /home": (": > /home/.probe && rm /home/.probe", "os os ss"),
    "a socket in the home folder": (CONNECT.format('"$ENV{HOME}/.colima/docker.sock"'), "oo oo ss"),
    "a FIFO in the home folder": ("[ -p $HOME/.agent ]", "oo oo ss"),
    "write beside a tool": (": > $HOME/.cargo/bin/other", "oo oo ss"),
    # what every build may do
    "run a tool of the home folder": ("$HOME/.cargo/bin/tool", "oo oo oo"),
    "run Python, wherever its user's home is": (f"{os.path.realpath(sys.executable)} -c pass", "o- o- o-"),
    "run a tool where a link leads": ("$HOME/.local/bin/tool", "oo oo oo"),
    "read packages": ("grep -q secret $HOME/.m2/repository/x.jar", "oo oo oo"),
    "write a source file": ("mkdir -p src && echo x > src/a", "oo oo oo"),
    "write Cargo.lock and target": ("echo x > Cargo.lock && mkdir target && echo x > target/a", "oo oo oo"),
    "delete a file": ("rm more.txt", "oo oo oo"),
    "git status": ("git status --short", "oo oo oo"),
    "git add": ("git add ok.txt", "oo oo ss"),
    "git gc": ("git gc -q", "oo oo ss"),
    "write to /dev/null, read /dev/urandom": ("head -c 9 /dev/urandom > /dev/null", "oo oo oo"),
    "shared memory": (": > /dev/shm/probe$$ && rm /dev/shm/probe$$", "oo oo oo"),
    "a temporary file": ("mktemp", "oo oo oo"),
    "a file of another user's": (": >> others.txt", "o- os os"),
    "give a file away": ("chown 1000:1000 ok.txt", "os os os"),
    "become another user": ("perl -e '$< = $> = 1000; exit($> == 1000 ? 0 : 1)'", "os os os"),
}

MODES = ("off", "guard", "strict")
USERS = {"root": 0, "another user": NOBODY}


@pytest.fixture(scope="module")
def world():
    """Make a folder in /tmp with a project, a link to a home and more, all of one user's; (folder, environment for the build)."""
    with contextlib.ExitStack() as at_the_end:
        yield lambda uid: make_world(uid, at_the_end)


def make_world(uid, at_the_end):
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="probe-")))
    at_the_end.callback(shutil.rmtree, folder)
    folder.chmod(0o755)
    home = Path(tempfile.mkdtemp(prefix="probe-", dir="/var/lib"))  # strict hides all of /tmp
    at_the_end.callback(shutil.rmtree, home)
    (folder / "home").symlink_to(home)
    others = {}
    for variable, place in (("IN_ROOT", "/root"), ("IN_HOME", "/home")):
        others[variable] = tempfile.mkdtemp(prefix="probe-", dir=place)
        at_the_end.callback(shutil.rmtree, others[variable])
        Path(others[variable]).chmod(0o755)
        Path(others[variable], "x").touch()
    make_files(folder, uid)
    servers = []
    sockets = (f"\0{folder}", f"{folder}/outside/socket", f"{folder}/home/.colima/docker.sock")
    for address in (("127.0.0.1", 0), *sockets):
        family = socket.AF_UNIX if address in sockets else socket.AF_INET
        servers.append(at_the_end.enter_context(socket.socket(family)))
        servers[-1].bind(address)
        servers[-1].listen(64)
    for name in ("outside/socket", "home/.colima/docker.sock"):
        (folder / name).chmod(0o777)
    victims = [start_victim(folder / "project", user, at_the_end) for user in (uid, STRANGER)]
    return folder, {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "FOO": KEY,
        "GEMINI_API_KEY": KEY,
        "OUTSIDE": str(folder / "outside"),
        "ABSTRACT": str(folder),
        "PORT": str(servers[0].getsockname()[1]),
        "RUN_ENTRY": min(entry.name for entry in Path("/run").iterdir()),
        "VICTIM": str(victims[0]),
        "STRANGER": str(victims[1]),
        **others,
    }


def make_files(folder, uid):
    root = folder / "project"
    for name in (
        "project/docs",
        "project/agent-config/logs",
        "home/.ssh",
        "home/.config/gh",
        "home/.cargo/bin",
        "home/.m2/repository",
        "home/.local",
        "home/.colima",
        "home/elsewhere",
        "home/keys",
        "home/cache",
        "home/other",
        "outside",
    ):
        (folder / name).mkdir(parents=True)
    for name in (
        "codeRollup.sh",
        "LLMInstructions.md",
        "UserSpecification.md",
        "docs/UserSpecification.md",
        "ok.txt",
        "more.txt",
    ):
        (root / name).write_text("x\n")
    (root / ".gitignore").write_text("/agent-config\n")
    for name in (".ssh/id", ".netrc", ".config/gh/hosts.yml", ".config/unheard-of", ".pgpass", "plain"):
        (folder / "home" / name).write_text("secret\n")
    for name in (".cargo/credentials.toml", ".m2/settings.xml", ".m2/repository/x.jar"):
        (folder / "home" / name).write_text("secret\n")
    (folder / "home/.local/bin").symlink_to("../elsewhere")
    for name in (".cargo/bin/tool", "elsewhere/tool"):
        (folder / "home" / name).write_text("#!/bin/sh\n")
        (folder / "home" / name).chmod(0o755)
    os.mkfifo(folder / "home/.agent")
    (root / "agent-config" / "gemini-key.txt").write_text(KEY + "\n")
    for provider, target in (
        ("openai", "home/keys/openai"),
        ("chat", "project/docs/key"),
        ("anthropic", "home/.ssh/key"),
    ):
        (folder / target).write_text(KEY + "\n")
        (root / "agent-config" / f"{provider}-key.txt").symlink_to(folder / target)
    subprocess.run(["git", "init", "-q", "--template="], cwd=root, check=True)
    (root / ".git" / "hooks").mkdir()
    (root / ".git" / "info").mkdir()
    (root / ".git" / "info" / "exclude").touch()
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    subprocess.run(["chown", "-R", f"{uid}:{uid}", *folder.iterdir(), f"{folder}/home/"], check=True)
    os.chown(folder, uid, uid)
    (root / "others.txt").touch(mode=0o600)
    os.chown(root / "others.txt", 1000, 1000)


def start_victim(root, user, at_the_end):
    """Start a process outside of any sandbox that stands in the project, has the key open, and no capability."""
    identity = [f"--reuid={user}", f"--regid={user}", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]
    with (root / "agent-config" / "gemini-key.txt").open() as key:
        victim = subprocess.Popen(["setpriv", *identity, "sleep", "300"], cwd=root, stdin=key)
    at_the_end.callback(victim.wait)
    at_the_end.callback(victim.kill)
    return victim.pid


def attempt(world, uid, mode, scripts, settings=None):
    """Run the attempts in one build, as the user's tool would run it; {name: exit code}.

    Without a sandbox each has a copy of the project to itself, since it succeeds.
    """
    folder, environment = world
    lines = ["#!/bin/bash", "export KEEPER=$PPID", "cp -a . ../copy 2> /dev/null" if mode == "off" else ""]
    for number, script in enumerate(scripts.values()):
        begin = f"cp -a ../copy ../copy{number}; cd ../copy{number}; " if mode == "off" else ""
        lines.append(f"({begin}exec timeout 10 bash -c {shlex.quote(script)}) > /dev/null 2>&1; echo {number} $?")
    (folder / "project" / "build.sh").write_text("\n".join(lines) + "\n")
    (folder / "project" / "build.sh").chmod(0o755)

    def build():
        os.environ["HOME"] = environment["HOME"]
        harden_process()
        project = find_project(folder / "project")
        sandbox, _ = choose_sandbox(mode, project, settings or Settings())
        cleaned = build_environment(environment, [KEY], 1, "run") | {"TOOL": str(os.getpid())}
        output = []
        run_build(project, output.append, timeout=100, environment=cleaned, sandbox=sandbox)
        return b"".join(output).decode()

    output = as_user(uid, build)
    codes = [int(line.split()[1]) for line in output.splitlines()]
    assert len(codes) == len(scripts), output
    return dict(zip(scripts, codes, strict=True))


@pytest.fixture(scope="module")
def verdicts(world):
    """Return a function that tells how each probe of a user ended in a mode; each set of them is run once."""
    ended = {}

    def ask(user, mode):
        if (user, mode) not in ended:
            ended[user, mode] = {}  # where the build itself fails it does so once
            scripts = {name: script for name, (script, _) in PROBES.items()}
            ended[user, mode] = attempt(world(USERS[user]), USERS[user], mode, scripts)
        return ended[user, mode]

    return ask


@pytest.mark.root
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("name", PROBES)
def test_a_probe_gets_what_it_should_and_no_more(needs_bwrap, verdicts, name, user):
    for mode, letters in zip(MODES, PROBES[name][1].split(), strict=True):
        expected = letters[list(USERS).index(user)]
        if expected == "-":
            continue
        code = verdicts(user, mode)[name]
        assert code not in (3, 124, 126, 127), f"the probe cannot run: {mode} {code}"
        assert ("o" if code == 0 else "s") == expected, (mode, code)


def test_the_table_is_as_large_as_it_claims():
    assert len(PROBES) >= 70
    assert all(len(verdicts) == 8 for _, verdicts in PROBES.values())


@pytest.mark.root
@pytest.mark.parametrize("user", USERS)
def test_strict_has_a_network_when_it_is_asked_for(needs_bwrap, world, user):
    scripts = {"connect": "exec 3<> /dev/tcp/127.0.0.1/$PORT"}
    assert attempt(world(USERS[user]), USERS[user], "strict", scripts, Settings(sandbox_network=True)) == {"connect": 0}


@pytest.mark.root
@pytest.mark.parametrize("user", USERS)
def test_strict_lets_named_caches_be_written_and_no_other_folder(needs_bwrap, world, user):
    folder, environment = world(USERS[user])
    scripts = {"cache": ": > $HOME/cache/x", "other": ": > $HOME/other/x"}
    home = environment["HOME"]
    settings = Settings(sandbox_caches=(f"{home}/cache", f"{home}/none"))
    codes = attempt((folder, environment), USERS[user], "strict", scripts, settings)
    assert codes["cache"] == 0
    assert codes["other"] != 0
    assert (folder / "home" / "cache" / "x").exists()


NESTED = """
from code_commit.build.sandbox import choose_sandbox
from code_commit.project import find_project
from code_commit.settings import Settings
print(choose_sandbox("auto", find_project(), Settings())[0])
"""


@pytest.mark.root
def test_nothing_waits_on_where_users_cannot_be_mapped(needs_bwrap, project_folder):
    """Root in another sandbox has no right to: that one ends only when all in it has ended."""
    outer = ["bwrap", "--dev-bind", "/", "/", "--proc", "/proc", "--unshare-user", "--unshare-pid", "--cap-drop", "ALL"]
    words = [*outer, sys.executable, "-c", NESTED]
    done = subprocess.run(words, cwd=project_folder, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (0, "None\n"), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["guard", "strict"])
@pytest.mark.parametrize("later", [0, 0.02, 0.1])
def test_a_tool_that_is_killed_while_its_sandbox_starts_leaves_nothing(
    mode: str, later: float, needs_bwrap, project_folder: Path, tmp_path: Path, monkeypatch
):
    (project_folder / "build.sh").write_text("#!/bin/sh\nsleep 61\n")
    programs = tmp_path / "bin"
    programs.mkdir()
    kill = f"(sleep {later}; kill -KILL $PPID) &" if later else "kill -KILL $PPID; sleep 0.3"
    bwrap = f"""#!/bin/sh\ncase "$*" in *"-- ./build.sh") {kill} ;; esac\nexec {shutil.which("bwrap")} "$@"\n"""
    (programs / "bwrap").write_text(bwrap)
    (programs / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    command = [*CODE_COMMIT, *recorded(project_folder, "^^^ok.txt\nok\n^^^end\n"), "--sandbox", mode]
    done = subprocess.run(command, cwd=project_folder, stderr=subprocess.DEVNULL, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL
    wait_for(lambda: not processes_in(project_folder), seconds=5)


def processes_in(folder: Path) -> list[str]:
    """Return the command lines of the processes that work in the folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cwd").resolve(strict=True) == folder:
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found


@pytest.mark.parametrize(
    ("settings", "is_shown"),
    [
        ("[user]\n\tname = x\n[core]\n\teditor = vi\n", True),
        (
            '[user]\n\tname = x\n  [URL "https://TOKEN@git.example.org/"]\n\tinsteadOf = https://git.example.org/\n',
            False,
        ),
        ("[http]\n\textraHeader = Authorization: TOKEN\n", False),
        ("[credential]\n\thelper = store\n", False),
    ],
)
def test_strict_shows_no_settings_of_git_that_may_hold_a_login(settings, is_shown, tmp_path):
    (tmp_path / ".config" / "git").mkdir(parents=True)
    for name in (".gitconfig", ".config/git/config"):
        (tmp_path / name).write_text(settings)
        assert (str(tmp_path / name) in list(_empty_homes([tmp_path]))) == is_shown
