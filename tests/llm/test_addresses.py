"""The user's keys and files never go to an address that only files of the project name."""

import json
import os
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import Run, the_log
from fake_server import FakeServer

KEY = "test-key-of-the-user-0123"
ELSEWHERE = "https://elsewhere.example/v1"
RIGHT = "^^^ok.txt\nok\n^^^end\n"
OPENAI = {"OPENAI_API_KEY": KEY}


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Give the hosts that were asked for: everything that would leave the machine comes here, and ends here."""
    asked: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    asked.append(connection.recv(4096).decode("latin-1").split()[1])
                    connection.sendall(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        monkeypatch.setitem(PROXY, "HTTPS_PROXY", f"http://127.0.0.1:{server.getsockname()[1]}")
        yield asked
        server.shutdown(socket.SHUT_RDWR)


PROXY: dict[str, str] = {}


def configure(root: Path, text: str) -> None:
    (root / "agent-config" / "config.toml").write_text(text)


def give_key(root: Path, provider: str = "openai") -> None:
    key = root / "agent-config" / f"{provider}-key.txt"
    key.write_text(KEY)
    key.chmod(0o600)


CONFIG = f'model = "openai:gpt-6.2-sol"\nbase_url = "{ELSEWHERE}"\n'
NOT_NAMED = {
    "the model": (CONFIG, OPENAI, "--base-url openai:https://elsewhere.example/v1"),
    "a chat server": (
        f'model = "chat:m"\nbase_url = "{ELSEWHERE}"', {"CODE_COMMIT_CHAT_API_KEY": KEY}, f"--base-url chat:{ELSEWHERE}",
    ),
    "the fallback": (
        f'model = "replay:none"\nfallback_model = "anthropic"\nfallback_base_url = "{ELSEWHERE}"',
        {"ANTHROPIC_API_KEY": KEY}, f"--fallback-base-url anthropic:{ELSEWHERE}",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("config", "key", "option"), NOT_NAMED.values(), ids=NOT_NAMED)
def test_no_key_of_the_environment_goes_to_an_address_of_config_alone(
    config, key, option, project_folder: Path, proxy, run_code_commit: Run
):
    (project_folder / "none").mkdir()
    configure(project_folder, config)
    for words in (["run"], ["-m", "Make ok.txt say ok."], ["check"], ["rollup", "--select"]):
        done = run_code_commit(project_folder, *words, env=key | PROXY)
        said = " ".join((done.stderr + done.stdout).split())
        assert (done.returncode, proxy) == (2, []), said
        assert (
            f"{next(iter(key))} would be sent to elsewhere.example, which only agent-config/config.toml names" in said
        )
        assert option in said
        assert KEY not in said
    assert not (project_folder / "agent-config" / "logs").exists()


def test_a_key_file_linked_from_outside_is_not_the_projects_own(
    project_folder: Path, tmp_path: Path, run_code_commit: Run
):
    configure(project_folder, CONFIG)
    (tmp_path / "key").write_text(KEY)
    (tmp_path / "key").chmod(0o600)
    (project_folder / "agent-config" / "openai-key.txt").symlink_to(tmp_path / "key")
    done = run_code_commit(project_folder, "check")
    assert (done.returncode, "openai-key.txt would be sent to elsewhere.example" in " ".join(done.stdout.split())) == (
        2,
        True,
    )


LINKED = {
    "query.txt": "agent-config/query.txt",
    "codeRollup.txt": "agent-config/codeRollup.txt",
    "system-prompts/initial_query.txt": "agent-config/system-prompts/initial_query.txt",
    "system-prompts": "agent-config/system-prompts",
}


@pytest.mark.parametrize(("file", "name"), LINKED.items(), ids=LINKED)
def test_no_file_that_a_prompt_takes_by_a_link_goes_to_an_address_of_config_alone(
    file, name, project_folder: Path, tmp_path: Path, proxy, run_code_commit: Run
):
    """No key is needed for that: an archive may have a key of its own, and a chat server none."""
    private = tmp_path / "private"
    private.mkdir()
    (private / "initial_query.txt").write_text("what nobody else should read\n")
    place = project_folder / "agent-config" / file
    place.parent.mkdir(exist_ok=True)
    place.unlink(missing_ok=True)
    place.symlink_to(private if file == "system-prompts" else private / "initial_query.txt")
    limit = ("--llm-timeout", "1", "--sandbox", "off")
    for config in (f'model = "chat:m"\nbase_url = "{ELSEWHERE}"', CONFIG):
        configure(project_folder, config)
        give_key(project_folder)
        done = run_code_commit(project_folder, *limit, env=PROXY)
        assert (done.returncode, proxy) == (2, []), done.stderr
        assert f"through the link {name}, would be sent to elsewhere.example" in " ".join(done.stderr.split())
    done = run_code_commit(project_folder, *limit, "--base-url", f"openai:{ELSEWHERE}", env=PROXY)
    assert (done.returncode, bool(proxy)) == (3, True), done.stderr
    assert run_code_commit(project_folder, *limit, env=PROXY).returncode == 3


def test_a_link_within_the_project_is_none_to_elsewhere(project_folder: Path, proxy, run_code_commit: Run):
    query = project_folder / "agent-config" / "query.txt"
    query.rename(project_folder / "task.txt")
    query.symlink_to("../task.txt")
    configure(project_folder, f'model = "chat:m"\nbase_url = "{ELSEWHERE}"')
    give_key(project_folder, "chat")
    done = run_code_commit(project_folder, "--llm-timeout", "1", "--sandbox", "off", env=PROXY)
    assert (done.returncode, bool(proxy)) == (3, True), done.stderr


def test_without_a_key_nothing_goes_to_an_address_of_config_alone(project_folder: Path, proxy, run_code_commit: Run):
    configure(project_folder, f'model = "chat:m"\nbase_url = "{ELSEWHERE}"')
    words = ("-m", "Make ok.txt say ok.", "--llm-timeout", "1", "--sandbox", "off")
    done = run_code_commit(project_folder, *words, env=PROXY)
    assert (done.returncode, proxy) == (2, []), done.stderr
    said = " ".join(done.stderr.split())
    assert "without a key, would be sent to elsewhere.example, which only agent-config/config.toml names" in said
    assert f"confirm it once with --base-url chat:{ELSEWHERE}" in said
    assert "or name the address and the model in your own settings" in said
    done = run_code_commit(project_folder, *words, "--base-url", f"chat:{ELSEWHERE}", env=PROXY)
    assert (done.returncode, bool(proxy)) == (3, True), done.stderr
    assert run_code_commit(project_folder, *words, env=PROXY).returncode == 3


NAMED = {
    "its own key": (CONFIG, [], {}),
    "a variable": (CONFIG, [], OPENAI | {"CODE_COMMIT_BASE_URL": f"openai:{ELSEWHERE}"}),
    "an option": (CONFIG, ["--base-url", f"openai:{ELSEWHERE}"], OPENAI),
    "the vendor's own": ('model = "openai"\nbase_url = "https://api.openai.com/v1/"', [], OPENAI),
    "another model's": ('model = "anthropic"\nbase_url = "https://api.anthropic.com"', [], {"ANTHROPIC_API_KEY": KEY}),
}


@pytest.mark.parametrize(("config", "options", "variables"), NAMED.values(), ids=NAMED)
def test_it_goes_to_one_that_the_user_names(
    config, options, variables, project_folder: Path, proxy, run_code_commit: Run
):
    configure(project_folder, config)
    if not variables:
        give_key(project_folder)
    done = run_code_commit(project_folder, *options, "--sandbox", "off", "--llm-timeout", "1", env=variables | PROXY)
    assert (done.returncode, len(set(proxy))) == (3, 1), done.stderr


HERE = {
    "no key": ("chat:m", {}),
    "a placeholder": ("chat:m", {"CODE_COMMIT_CHAT_API_KEY": "lm-studio"}),
    "its own key": ("openai", {}),
}


@pytest.mark.parametrize(("model", "variables"), HERE.values(), ids=HERE)
def test_on_this_machine_config_toml_is_enough_without_a_key_of_the_users(
    model: str, variables: dict[str, str], project_folder: Path, run_code_commit: Run
):
    give_key(project_folder)
    with FakeServer(answers=[RIGHT]) as server:
        configure(project_folder, f'model = "{model}"\nbase_url = "{server.url}"')
        done = run_code_commit(project_folder, "--sandbox", "off", env=variables)
    assert done.returncode == 0, done.stderr


def test_a_key_of_the_users_goes_to_a_port_of_this_machine_only_where_they_named_it(
    project_folder: Path, run_code_commit: Run
):
    """Whoever packed an archive may listen there: another user of the machine, or the other end of a tunnel."""
    env = {"CODE_COMMIT_CHAT_API_KEY": KEY}
    with FakeServer(answers=[RIGHT]) as server:
        configure(project_folder, f'model = "chat:m"\nbase_url = "{server.url}"')
        for words in (["check", "-m", "x"], ["-m", "x"], ["-m", "x", "--rollup", "select"]):
            done = run_code_commit(project_folder, *words, "--sandbox", "off", env=env)
            said = " ".join((done.stdout + done.stderr).split())
            assert (done.returncode, server.requests) == (2, []), said
            assert f"CODE_COMMIT_CHAT_API_KEY would be sent to {server.url.removeprefix('http://')}" in said
        named = run_code_commit(project_folder, "-m", "x", "--sandbox", "off", "--base-url", server.url, env=env)
        assert named.returncode == 0, named.stderr
        assert run_code_commit(project_folder, "check", "-m", "x", "--sandbox", "off", env=env).returncode == 0


def memory() -> Path:
    return Path(os.environ["HOME"], ".local/state/code-commit/addresses")


def test_an_option_is_remembered_for_this_project_and_this_address(
    project_folder: Path, tmp_path: Path, proxy, run_code_commit: Run
):
    configure(project_folder, CONFIG)
    env, limit = OPENAI | PROXY, ("--llm-timeout", "1", "--sandbox", "off")
    checked = run_code_commit(project_folder, "check", "--base-url", f"openai:{ELSEWHERE}", env=env)
    assert (checked.returncode, memory().exists()) == (0, False), checked.stdout
    done = run_code_commit(project_folder, *limit, "--base-url", f"openai:{ELSEWHERE}", env=env)
    told = f"openai at {ELSEWHERE} is remembered for this project, in ~/.local/state/code-commit/addresses"
    assert told in " ".join(done.stderr.split())
    assert (stat.S_IMODE(memory().stat().st_mode), stat.S_IMODE(memory().parent.stat().st_mode)) == (0o600, 0o700)
    asked = len(proxy)
    done = run_code_commit(project_folder, *limit, env=env)
    assert (done.returncode, len(proxy) > asked, "remembered" in done.stderr) == (3, True, False), done.stderr
    run_code_commit(project_folder, *limit, "--base-url", f"openai:{ELSEWHERE}", env=env)
    assert memory().read_text().count("\n") == 1
    configure(project_folder, CONFIG.replace("elsewhere", "nowhere"))
    assert run_code_commit(project_folder, *limit, env=env).returncode == 2
    configure(project_folder, CONFIG.replace("openai:gpt-6.2-sol", "chat:m"))
    assert run_code_commit(project_folder, *limit, env=env | {"CODE_COMMIT_CHAT_API_KEY": KEY}).returncode == 2
    configure(project_folder, CONFIG)
    project_folder.rename(tmp_path / "moved")
    assert run_code_commit(tmp_path / "moved", *limit, env=env).returncode == 2


@pytest.mark.parametrize("place", ["inside", "relative", "not writable"])
def test_where_nothing_can_be_remembered_it_is_named_each_time(
    place, project_folder: Path, proxy, run_code_commit: Run
):
    configure(project_folder, CONFIG)
    folder = {"inside": str(project_folder / "state"), "relative": "state", "not writable": "/dev/null"}[place]
    home = str(project_folder) if place == "relative" else os.environ["HOME"]
    env = OPENAI | PROXY | {"XDG_STATE_HOME": folder, "HOME": home}
    limit = ("--llm-timeout", "1", "--sandbox", "off")
    done = run_code_commit(project_folder, *limit, "--base-url", f"openai:{ELSEWHERE}", env=env)
    assert done.returncode == 3, done.stderr
    done = run_code_commit(project_folder, *limit, env=env)
    assert done.returncode == 2
    assert ("confirm it once" in done.stderr) == (place == "not writable")
    assert not (project_folder / "state").exists()
    assert not (project_folder / ".local").exists()


@pytest.mark.slow
def test_an_address_of_a_log_is_none_that_the_user_named(project_folder: Path, proxy, run_code_commit: Run):
    env, limit = OPENAI | PROXY, ("--llm-timeout", "1")
    run_code_commit(project_folder, "--model", "openai", "--base-url", ELSEWHERE, "--sandbox", "off", *limit, env=env)
    record = the_log(project_folder) / "run.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"status": "interrupted", "exit_code": 130}))
    asked = len(proxy)
    done = run_code_commit(project_folder, "resume", *limit, env=env)
    assert (done.returncode, len(proxy) > asked) == (3, True), done.stderr
    memory().unlink()
    asked = len(proxy)
    record.write_text(json.dumps(json.loads(record.read_text()) | {"status": "interrupted", "exit_code": 130}))
    done = run_code_commit(project_folder, "resume", *limit, env=env)
    assert (done.returncode, len(proxy)) == (2, asked), done.stderr
    assert "which only the log of this run names" in " ".join(done.stderr.split())
    done = run_code_commit(project_folder, "resume", *limit, env=env | {"CODE_COMMIT_BASE_URL": ELSEWHERE})
    assert (done.returncode, len(proxy) > asked) == (3, True), done.stderr
    record.write_text(json.dumps(json.loads(record.read_text()) | {"status": "interrupted", "exit_code": 130}))
    done = run_code_commit(project_folder, "resume", "--base-url", ELSEWHERE, *limit, env=env)
    assert done.returncode == 3, done.stderr
