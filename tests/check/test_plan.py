"""What is not fit to start a run: one clear message, exit 2, nothing sent, nothing written."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from command import CODE_COMMIT, Run, git
from fake_server import FakeServer

from code_commit.project import find_project

KEY = "sk-test-0123456789abcdef"


def fingerprint(root: Path) -> dict[str, str]:
    """Every path below the root with its mode and content."""
    found = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path)] = f"{status.st_mode:o} {content}"
    return found


def config(root: Path) -> Path:
    return root / "agent-config"


def tracked_key(root: Path) -> None:
    (config(root) / "openai-key.txt").write_text(KEY)
    git(root, "add", "-f", "agent-config/openai-key.txt")
    git(root, "commit", "-qm", "oops")


def shared_key(root: Path) -> None:
    config(root).chmod(0o755)
    (config(root) / "openai-key.txt").write_text(KEY)
    (config(root) / "openai-key.txt").chmod(0o644)


def key(text: str | bytes) -> Callable[[Path], None]:
    def write(root: Path) -> None:
        path = config(root) / "openai-key.txt"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(0o600)

    return write


def override(name: str, text: str) -> Callable[[Path], None]:
    def write(root: Path) -> None:
        (config(root) / "system-prompts").mkdir()
        (config(root) / "system-prompts" / name).write_text(text)

    return write


Case = tuple[Callable[[Path], object], list[str], list[str]]
NOTHING: Callable[[Path], object] = lambda root: None  # noqa: E731 - reads as the table's word

CASES: dict[str, Case] = {
    "query missing": (lambda root: (config(root) / "query.txt").unlink(), [], ["agent-config/query.txt is missing"]),
    "query empty": (lambda root: (config(root) / "query.txt").write_text(" \n"), [], ["agent-config/query.txt is empty"]),
    "query not UTF-8": (
        lambda root: (config(root) / "query.txt").write_bytes(b"abc\xff"), [], ["agent-config/query.txt is not UTF-8", "byte 3"],
    ),
    "query a folder": (
        lambda root: [(config(root) / "query.txt").unlink(), (config(root) / "query.txt").mkdir()], [], ["agent-config/query.txt is a folder, and must be a file"],
    ),
    "rollup missing": (lambda root: (config(root) / "codeRollup.txt").unlink(), [], ["agent-config/codeRollup.txt is missing"]),
    "rollup empty": (lambda root: (config(root) / "codeRollup.txt").write_text(""), [], ["agent-config/codeRollup.txt is empty"]),
    "rollup not UTF-8": (
        lambda root: (config(root) / "codeRollup.txt").write_bytes(b"\x80"), [], ["agent-config/codeRollup.txt is not UTF-8"],
    ),
    "rollup of 10 MB": (
        lambda root: (config(root) / "codeRollup.txt").write_text("some code\n" * 1_000_000), [], ["does not fit", "codebase"],
    ),
    "query of 10 MB": (
        lambda root: (config(root) / "query.txt").write_text("some words\n" * 900_000), [], ["does not fit", "query"],
    ),
    "everything missing": (
        lambda root: [shutil.rmtree(config(root)), (root / "build.sh").unlink(), (root / ".gitignore").unlink()],
        [],
        [".gitignore is missing", "query.txt is missing", "codeRollup.txt is missing", "build.sh is missing", "code-commit init writes"],
    ),
    "a file in place of agent-config": (
        lambda root: [shutil.rmtree(config(root)), config(root).write_text("x")],
        [],
        ["code-commit: agent-config is not a folder: move it away, then run code-commit init\n"],
    ),
    "a link in place of agent-config": (
        lambda root: [config(root).rename(root / "elsewhere"), config(root).symlink_to("elsewhere")],
        [],
        ["code-commit: agent-config is a link: put a real folder there\n"],
    ),
    "an empty system prompt": (
        override("initial_query.txt", " \n"), [], ["agent-config/system-prompts/initial_query.txt is empty: write the prompt"],
    ),
    "config.toml a folder": (
        lambda root: (config(root) / "config.toml").mkdir(), [], ["agent-config/config.toml is a folder, and must be a file"],
    ),
    "a name that is too long": (NOTHING, ["--query", "n" * 300], ["cannot be read: File name too long"]),
    "a folder as the task": (NOTHING, ["--query", "agent-config"], ["agent-config is a folder, and must be a file"]),
    ".gitignore a folder": (
        lambda root: [(root / ".gitignore").unlink(), (root / ".gitignore").mkdir()], [], [".gitignore is a folder, and must be a file"],
    ),
    "no ignore file": (lambda root: (root / ".gitignore").unlink(), [], [".gitignore is missing"]),
    "no ignore line": (lambda root: (root / ".gitignore").write_text("/target\n"), [], [".gitignore lacks the line /agent-config"]),
    "another line": (lambda root: (root / ".gitignore").write_text("agent-config\n"), [], [".gitignore lacks the line"]),
    "line taken back": (lambda root: (root / ".gitignore").write_text("/agent-config\n!/agent-config\n"), [], ["includes it again"]),
    "line in a comment": (lambda root: (root / ".gitignore").write_text("# /agent-config\n"), [], ["lacks the line"]),
    "build.sh missing": (lambda root: (root / "build.sh").unlink(), [], ["build.sh is missing"]),
    "build.sh a folder": (
        lambda root: [(root / "build.sh").unlink(), (root / "build.sh").mkdir()], [], ["build.sh is a folder: put the script itself there"],
    ),
    "tracked key file": (tracked_key, [], ["git tracks agent-config/openai-key.txt", "git rm -r --cached"]),
    "key that others can read": (shared_key, [], ["chmod 600 agent-config/openai-key.txt"]),
    "key with a line end": (key("sk-test-0123\n456789\n"), [], ["agent-config/openai-key.txt contains a space"]),
    "key with a blank": (key("sk-test 0123456789"), [], ["agent-config/openai-key.txt contains a space"]),
    "key of three characters": (key("abc"), [], ["agent-config/openai-key.txt contains only 3 characters"]),
    "no key": (lambda root: (config(root) / "openai-key.txt").unlink(), [], ["no key for openai"]),
    "key in the rollup": (
        lambda root: (config(root) / "codeRollup.txt").write_text(f"--- .env ---\nKEY={KEY}\n"), [], ["would contain an API key"],
    ),
    "key in the query": (lambda root: (config(root) / "query.txt").write_text(f"use {KEY}\n"), [], ["would contain an API key"]),
    "unknown model": (NOTHING, ["--model", "foo"], ["unknown model 'foo'"]),
    "a provider that is none": (
        NOTHING, ["--model", "mistral:large"], ["there is no provider 'mistral': use --model chat:large with --base-url, or one of"],
    ),
    "model without name": (NOTHING, ["--model", "chat:"], ["needs the model's name"]),
    "chat without URL": (NOTHING, ["--model", "chat:x", "--base-url", ""], ["base"]),
    "replay without folder": (NOTHING, ["--model", "replay:nowhere"], ["no folder nowhere"]),
    "unknown option": (NOTHING, ["--max-repair", "1"], ["unrecognized arguments: --max-repair"]),
    "unknown command": (NOTHING, ["bild"], ["there is no command 'bild'"]),
    "not a number": (NOTHING, ["--max-repairs", "x"], ["must be a whole number"]),
    "negative": (NOTHING, ["--max-repairs", "-1"], ["argument --max-repairs: must be 0 or more"]),
    "typo in config.toml": (lambda root: (config(root) / "config.toml").write_text("max_repair = 1\n"), [], ["did you mean 'max_repairs'"]),
    "broken config.toml": (lambda root: (config(root) / "config.toml").write_text("a = \n"), [], ["config.toml is not valid TOML"]),
    "plain http elsewhere": (NOTHING, ["--base-url", "http://192.0.2.1/v1"], ["http"]),
    "a key in the URL": (NOTHING, ["--base-url", "https://user:secret@example.org/v1"], ["--base-url must be an address"]),
    "tree not clean": (lambda root: (root / "ok.txt").write_text("edited\n"), ["--require-clean"], ["not clean"]),
    "a pattern that leaves the project": (NOTHING, ["--protect", "../x"], ["--protect ../x can match nothing: it contains '..'"]),
    "an absolute pattern in config.toml": (
        lambda root: (config(root) / "config.toml").write_text(f"allow = ['{root}/ok.txt']\n"),
        [],
        ["code-commit: config.toml's allow /", "/ok.txt can match nothing: it is an absolute path: write /ok.txt\n"],
    ),
    "guard without bubblewrap": (NOTHING, ["--sandbox", "guard"], ["bubblewrap"]),
}  # fmt: skip


@pytest.mark.parametrize(("spoil", "arguments", "said"), CASES.values(), ids=CASES)
def test_one_clear_message_and_nothing_sent_or_written(
    spoil, arguments, said, project_folder: Path, run_code_commit: Run, tmp_path
):
    key(KEY)(project_folder)
    spoil(project_folder)
    before = fingerprint(project_folder)
    env = {}
    if arguments == ["--sandbox", "guard"]:
        env = {"PATH": path_without("bwrap", tmp_path)}
    with FakeServer(answers=["^^^ok.txt\nok\n^^^end\n"]) as server:
        base = ["--model", "openai:gpt-6.2-sol", "--base-url", server.base_url("openai")]
        done = run_code_commit(project_folder, *([] if arguments == ["bild"] else base), *arguments, env=env)
        sent = list(server.requests)
    assert done.returncode == 2, done.stderr
    for text in said:
        assert text in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert KEY not in done.stderr
    assert sent == []
    assert fingerprint(project_folder) == before


@pytest.mark.parametrize(("arguments", "rollup"), [(["-m", "x"], "file"), ([], "fresh")])
def test_unusable_settings_say_nothing_of_a_codebase_that_they_may_have_made(
    arguments, rollup, project_folder, run_code_commit
):
    (config(project_folder) / "codeRollup.txt").unlink()
    (config(project_folder) / "config.toml").write_text(f"rollup = '{rollup}'\nmax_repair = 1\n")
    done = run_code_commit(project_folder, *arguments)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "did you mean 'max_repairs'" in done.stderr


def path_without(program: str, folder: Path) -> str:
    """Return a PATH of one folder that has everything of the real one but the program."""
    tools = folder / "tools"
    tools.mkdir()
    for place in reversed(os.environ["PATH"].split(os.pathsep)):
        for entry in Path(place).iterdir() if os.access(place, os.R_OK) else ():
            if entry.name != program and not (tools / entry.name).exists():
                (tools / entry.name).symlink_to(entry)
    return str(tools)


def replay(root: Path, answer: str = "^^^ok.txt\nok\n^^^end\n") -> list[str]:
    (config(root) / "recorded").mkdir()
    (config(root) / "recorded" / "1-response.txt").write_text(answer)
    return ["--model", "replay:agent-config/recorded"]


def test_a_misnamed_system_prompt_is_named(project_folder: Path, run_code_commit: Run):
    override("initial-query.txt", "Be brief.\n")(project_folder)
    arguments = replay(project_folder)
    named = (
        "agent-config/system-prompts/initial-query.txt is not read: the names are code_modification_instructions.txt, "
    )
    checked = run_code_commit(project_folder, "check", *arguments)
    assert (checked.returncode, named in " ".join(checked.stdout.split())) == (0, True), checked.stdout
    assert f"warning: {named}" in run_code_commit(project_folder, *arguments).stderr
    (config(project_folder) / "system-prompts/initial-query.txt").rename(
        config(project_folder) / "system-prompts/initial_query.txt"
    )
    assert "is not read" not in run_code_commit(project_folder, "check", *arguments).stdout


def test_a_dry_run_has_one_attempt(project_folder: Path, run_code_commit: Run):
    done = run_code_commit(project_folder, *replay(project_folder), "--dry-run")
    assert "attempt 1 of 1: " in done.stderr


def test_in_the_root_folder(run_code_commit: Run):
    done = run_code_commit(Path("/"), "check", "--model", "replay:x")
    assert done.returncode == 2
    assert ".gitignore is missing" in done.stdout


@pytest.mark.root("mount")
def test_in_a_folder_that_cannot_be_written(project_folder: Path):
    arguments = replay(project_folder)
    before = fingerprint(project_folder)
    mount = 'mount --bind . . && mount -o remount,ro,bind . && cd "$PWD" && exec "$@"'
    command = ["unshare", "-m", "sh", "-c", mount, "sh", *CODE_COMMIT, *arguments]
    done = subprocess.run(command, cwd=project_folder, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "Read-only file system" in done.stderr
    assert "Traceback" not in done.stderr
    assert fingerprint(project_folder) == before


def test_without_home(project_folder: Path, run_code_commit: Run):
    done = run_code_commit(project_folder, *replay(project_folder), env={"HOME": ""})
    assert done.returncode == 0, done.stderr


def test_outside_a_repository(project_folder: Path, run_code_commit: Run):
    arguments = replay(project_folder)
    shutil.rmtree(project_folder / ".git")
    done = run_code_commit(project_folder, *arguments)
    assert done.returncode == 0, done.stderr
    assert "not a git repository" in done.stderr
    assert (project_folder / "ok.txt").read_text() == "ok\n"


def test_in_a_folder_with_blanks_and_line_ends_in_its_name(project_folder: Path, run_code_commit: Run):
    odd = project_folder.rename(project_folder.with_name(" odd\n\tna'me "))
    done = run_code_commit(odd, *replay(odd))
    assert done.returncode == 0, done.stderr
    assert (odd / "ok.txt").read_text() == "ok\n"


def test_a_slash_behind_the_ignore_line_is_fine(project_folder: Path, run_code_commit: Run):
    (project_folder / ".gitignore").write_bytes(b"\xef\xbb\xbf/agent-config/\r\n")
    done = run_code_commit(project_folder, *replay(project_folder))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("head", ["", "#!/bin/sh\n"])
def test_a_build_script_without_run_bit_or_shebang_runs_through_bash(head, project_folder: Path, run_code_commit: Run):
    (project_folder / "build.sh").write_text(f"{head}grep -q '^ok$' ok.txt\n")
    (project_folder / "build.sh").chmod(0o644)
    done = run_code_commit(project_folder, *replay(project_folder))
    assert done.returncode == 0, done.stderr
    assert "build.sh" in done.stderr
    assert "warning" in done.stderr


def test_a_build_sh_on_the_path_is_not_run_instead(project_folder: Path, run_code_commit: Run, tmp_path):
    (tmp_path / "build.sh").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "build.sh").chmod(0o755)
    (project_folder / "build.sh").unlink()
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    assert run_code_commit(project_folder, *replay(project_folder), env={"PATH": path}).returncode == 2


def test_a_build_script_whose_interpreter_is_missing_is_no_failing_build(project_folder: Path, run_code_commit: Run):
    (project_folder / "build.sh").write_text("#!/no/such/shell\n")
    done = run_code_commit(project_folder, *replay(project_folder))
    assert done.returncode == 2
    assert "/no/such/shell does not exist" in done.stderr
    assert not (project_folder / "agent-config" / "logs").exists()  # no run was begun, nothing was sent


def test_standard_input_is_not_read(project_folder: Path):
    arguments = replay(project_folder)
    (project_folder / "build.sh").write_text("#!/bin/sh\nread line && exit 1\nexit 0\n")
    command = [*CODE_COMMIT, *arguments]
    read_end, write_end = os.pipe()  # an input that never ends
    try:
        done = subprocess.run(command, cwd=project_folder, stdin=read_end, capture_output=True, timeout=30, check=False)
    finally:
        os.close(read_end)
        os.close(write_end)
    assert done.returncode == 0, done.stderr


def test_what_the_parser_asks_of_the_project(project_folder: Path):
    project = find_project(project_folder)
    (project_folder / "a.txt").write_bytes(b"API\n^^^ \r\n\xff\n  ^^^^\n")
    (project_folder / "link.txt").symlink_to("a.txt")
    os.mkfifo(project_folder / "pipe")
    assert [project.has_line("a.txt", line) for line in ("^^^", "API", "^^^^", "AP")] == [True, True, False, False]
    odd = ["none", "link.txt", "pipe", "", ".git", "../a.txt", "/etc/hosts", "\0", "x" * 300, "a.txt/b", "\udc80"]
    assert not any(project.has_line(path, "^^^") for path in odd)
    assert [path for path in ["", ".git", *odd] if project.has_folder(path)] == ["", ".git", "", ".git"]
