"""The way to an address: to whom headers, key header, certificate and key command go, and that nothing else shows them."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from asking import KEY, WAYS, ask, open_way
from command import Run, git, the_log
from fake_server import FakeServer, Fault

from code_commit import api
from code_commit.errors import NotSetUpError
from code_commit.llm.keys import ApiKey, Keys, choose_selector, find_secrets, key_of, load_keys
from code_commit.llm.models import check_base_url, choose_fallback, choose_model, context_window
from code_commit.llm.reach import reach_of
from code_commit.llm.vendor import LlmConfig
from code_commit.project import Project, find_project
from code_commit.settings import Settings
from code_commit.sources import load_settings

RIGHT = "^^^ok.txt\nok\n^^^end\n"
WRONG = "^^^ok.txt\nno\n^^^end\n"
TOKEN, FILED, PRINTED = "tok-variable-0123456789", "tok-file-9876543210", "tok-printed-5678901234"
OURS, THEIRS = "https://gateway.example/v1", "https://elsewhere.example/v1"


@pytest.fixture
def project(project_folder: Path) -> Project:
    return find_project(project_folder)


def write(folder: Path, text: str) -> None:
    (folder / "config.toml").write_text(text)


def write_program(folder: Path, script: str) -> str:
    """Write a program, and return its path."""
    folder.mkdir(exist_ok=True)
    program = folder / "print-key"
    program.write_text(f"#!{sys.executable}\n{script}\n")
    program.chmod(0o755)
    return str(program)


def numbered(folder: Path) -> str:
    """Return the script of a program whose key has the number of the call at its end."""
    return (
        f"import pathlib; f = pathlib.Path({str(folder / 'calls')!r}); n = len(f.read_bytes()) if f.exists() else 0; "
        f"f.write_bytes(b'x' * (n + 1)); print('{PRINTED}-' + str(n))"
    )


def reach_in(
    project: Project, model: str = "", options: dict | None = None, role: str = "", logged: dict | None = None
):
    settings = load_settings(project, options or {}, {"TOKEN": TOKEN}, logged)
    choice = choose_model(model or settings.model)
    if role:
        fallback = choose_fallback(choice, settings)
        assert fallback
        choice, settings = fallback.choice, fallback.settings
    return reach_of(choice, settings, {"TOKEN": TOKEN})


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_headers_key_header_and_query_go_with_every_request(way):
    answers = {"headers": {"X-Team": "platform", "user-agent": "mine"}, "key_header": "api-key"}
    with FakeServer(["hello"], tokens=5) as server:
        base = f"{server.base_url(way.provider) or server.url}?api-version=2026-01-01"
        server.base_url = lambda _: base
        response, listener = ask(way, server, max_cost=1000 if way.provider != "chat" else None, **answers)
    assert response.text == "hello"
    assert len(server.requests) == (3 if way.is_background else 1)
    for request in server.requests:
        assert request.path.endswith("?api-version=2026-01-01"), request.path
        sent = request.headers
        assert (sent["x-team"], sent["user-agent"], sent["api-key"]) == ("platform", "mine", KEY)
        assert not sent.keys() & {"authorization", "x-goog-api-key", "x-api-key"}
    assert listener.request[0].endswith("?api-version=2026-01-01")
    assert listener.request[1]["X-Team"] == "******rm", "a log has no text of eight characters and more"


def test_a_servers_probes_get_them_too(project_folder, user, run_code_commit: Run):
    with FakeServer([RIGHT], facts={"/props": {"default_generation_settings": {"n_ctx": 100_000}}}) as server:
        write(
            user, f'model = "chat:m"\nbase_url = "{server.url}/v1?tenant=a"\n[headers]\nX-Token = {{env = "TOKEN"}}\n'
        )
        done = run_code_commit(project_folder, "--sandbox", "off", env={"TOKEN": TOKEN})
    assert done.returncode == 0, done.stderr
    assert server.questions[0] == "/props?tenant=a"
    assert server.requests[0].headers["x-token"] == TOKEN


USERS = 'key_header = "api-key"\nkey_command = "sh"\n[headers]\nX-Token = {env = "TOKEN"}\n'
PLACES = {
    "its own address": ('model = "chat:m"\nbase_url = "{ours}"', "", {}, True),
    "its own address, another model there": ('model = "chat:m"\nbase_url = "{ours}"', 'model = "chat:n"', {}, True),
    "the project's address": ('model = "chat:m"\nbase_url = "{ours}"', 'model = "chat:m"\nbase_url = "{theirs}"', {}, False),
    "an option's address": ('model = "chat:m"\nbase_url = "{ours}"', "", {"base_url": "chat:" + THEIRS}, False),
    "another provider's model": ('model = "chat:m"\nbase_url = "{ours}"', 'model = "anthropic"', {}, False),
    "the same host of another provider": (
        'model = "chat:m"\nbase_url = "{ours}"', 'model = "openai"\nbase_url = "{ours}"', {}, False,
    ),
    "the vendor's own": ('model = "openai"', "", {}, True),
    "the vendor's own, another model there": ('model = "openai"', 'model = "openai:gpt-6-luna"', {}, True),
    "the project's in the vendor's place": ('model = "openai"', 'model = "openai"\nbase_url = "{theirs}"', {}, False),
    "another vendor": ('model = "openai"', 'model = "gemini"', {}, False),
}  # fmt: skip


@pytest.mark.parametrize(("own", "of_project", "options", "gets_it"), PLACES.values(), ids=PLACES)
def test_what_the_user_sets_is_for_the_address_of_the_same_place_alone(
    own, of_project, options, gets_it, project, user
):
    write(user, own.format(ours=OURS) + "\n" + USERS)
    write(project.agent_config, of_project.format(ours=OURS, theirs=THEIRS))
    reach = reach_in(project, options=options)
    found = (reach.headers, reach.key_header, reach.key_command)
    assert found == (({"X-Token": TOKEN}, "api-key", "sh") if gets_it else ({}, "", ""))


def test_without_an_address_beside_it_the_user_is_asked_for_one(project, user):
    write(user, USERS)
    write(project.agent_config, f'model = "chat:m"\nbase_url = "{THEIRS}"\n')
    with pytest.raises(
        NotSetUpError, match=r"your own config.toml: key_command, \[headers\], key_header needs an address"
    ):
        reach_in(project)


FALLBACKS = {
    "of another vendor": ('fallback_model = "anthropic"', False),
    "of the same vendor at another address": (f'fallback_model = "chat:n"\nfallback_base_url = "{THEIRS}"', False),
    "of the same vendor at the same address": ('fallback_model = "chat:n"', True),
}


@pytest.mark.parametrize(("fallback", "gets_it"), FALLBACKS.values(), ids=FALLBACKS)
def test_no_fallback_of_another_address_gets_it(fallback, gets_it, project, user):
    write(user, f'model = "chat:m"\nbase_url = "{OURS}"\n{fallback}\n{USERS}')
    assert bool(reach_in(project, role="fallback").headers) == gets_it
    write(user, f'model = "chat:m"\nbase_url = "{OURS}"\n{fallback}\n')
    command = {"key_command": "sh"}
    assert reach_in(project, options=command).key_command == "sh"
    assert bool(reach_in(project, options=command, role="fallback").key_command) == gets_it
    made = load_settings(project, command, {})._replace(sources={})
    taken = choose_fallback(choose_model(made.model), made)
    assert bool(reach_of(taken.choice, taken.settings).key_command) == gets_it, "as a program makes settings"


def test_a_fallback_has_the_way_that_stands_beside_its_own_model(project, user):
    write(user, f'model = "openai"\n{USERS}')
    write(project.agent_config, f'model = "chat:m"\nbase_url = "{THEIRS}"\nfallback_model = "openai"\n')
    assert (reach_in(project).headers, reach_in(project, role="fallback").headers) == ({}, {"X-Token": TOKEN})


@pytest.mark.parametrize("other", ["openai", "openai:gpt-5.5"])
def test_a_fallback_or_chooser_of_another_provider_has_its_own_address_and_window(other, project, user):
    settings = f'context_window = 9000\nselect_model = "{other}"\nfallback_model = "{other}"\n'
    write(project.agent_config, f'model = "chat:m"\nbase_url = "{THEIRS}"\n{settings}')
    settings, keys = load_settings(project, {}, {}), Keys({"openai": ApiKey("openai", KEY, "a test")})
    own = choose_model(settings.model)
    for llm in (
        choose_selector(settings, LlmConfig(own, None, settings), keys, project.root),
        choose_fallback(own, settings),
    ):
        assert check_base_url(llm.choice, llm.settings) == "https://api.openai.com/v1"
        assert context_window(llm.choice, llm.settings) == context_window(llm.choice, Settings()) > 9000


def test_headers_of_the_project_are_added_by_their_names(project, user):
    write(user, f'model = "chat:m"\nbase_url = "{OURS}"\n[headers]\nX-A = "user"\nX-B = "user"\n')
    write(project.agent_config, '[headers]\nX-B = "project"\n')
    assert reach_in(project).headers == {"X-A": "user", "X-B": "project"}


REFUSED = {
    "a key command": ('key_command = "cat /home/u/.ssh/id"', "key_command"),
    "a key command as words": ('key_command = ["cat", "x"]', "key_command"),
    "a certificate": ('client_cert = "~/cert.pem"', "client_cert"),
    "a certificate's key": ('client_key = "~/key.pem"', "client_key"),
    "a variable": ('[headers]\nX-A = {env = "AWS_SECRET_ACCESS_KEY"}', "[headers] X-A"),
    "a file": ('[headers]\nX-A = {file = "~/.netrc"}', "[headers] X-A"),
}


@pytest.mark.parametrize(("config", "named"), REFUSED.values(), ids=REFUSED)
def test_an_unpacked_archive_runs_no_program_and_reads_no_secret(config, named, project_folder, run_code_commit: Run):
    address = f'model = "chat:m"\nbase_url = "{THEIRS}"\n'
    write(project_folder / "agent-config", address + config)
    done = run_code_commit(project_folder, "--llm-timeout", "1", env={"HTTPS_PROXY": "http://127.0.0.1:9"})
    assert done.returncode == 2
    assert f"agent-config/config.toml: only your own config.toml may set {named}" in " ".join(done.stderr.split())


def test_a_header_may_bring_the_key_itself(project, user):
    write(user, 'model = "openai"\n[headers]\nauthorization = {env = "TOKEN"}\n')
    settings = load_settings(project, {}, {})
    llm = LlmConfig(choose_model("openai"), None, settings)
    os.environ["TOKEN"] = f"Bearer {TOKEN}"
    try:
        assert key_of(llm, load_keys(project, {}), project.root) is None
        with FakeServer(["hello"]) as server:
            ask(WAYS["responses"], server, headers={"authorization": {"env": "TOKEN"}})
    finally:
        del os.environ["TOKEN"]
    assert server.requests[0].headers["authorization"] == f"Bearer {TOKEN}"


def test_what_is_a_secret_of_a_header(project, user):
    random = "Zk3qX9vB7nR2tY8wPd5mJh4c"
    (user / "t").write_text(FILED)
    (user / "t").chmod(0o600)
    write(
        user,
        f'[headers]\nA = "Bearer {random}"\nB = "the platform team"\nC = {{env = "TOKEN"}}\nD = {{file = "{user}/t"}}\n'
        'E = {env = "SHORT"}\nF = {env = "NONE"}\nAuthorization = "Basic letters-alone"\n',
    )
    write(project.agent_config, '[headers]\nG = {env = "TOKEN2"}\n')
    secrets = find_secrets(project, {"TOKEN": f"Bearer {TOKEN}", "SHORT": "abc", "TOKEN2": "not-the-projects"})
    assert {*secrets} == {random, "letters-alone", f"Bearer {TOKEN}", TOKEN, FILED}


@pytest.mark.slow
def test_secrets_show_nowhere(project_folder, user, tmp_path, run_code_commit: Run):
    """In no log, page, record, patch, message, process list or build; in the header of each request alone."""
    program = write_program(tmp_path / "bin", numbered(tmp_path))
    (user / "t").write_text(FILED)
    (user / "t").chmod(0o600)
    secrets = (TOKEN, FILED, PRINTED)
    # what the build prints is in the log, and in the next prompt
    look = "env; grep -aE 'to[k]-(variable|file|printed)' /proc/[0-9]*/cmdline && echo a process shows it"
    (project_folder / "build.sh").write_text(f"#!/bin/sh\n{look}\ngrep -q '^ok$' ok.txt\n")
    git(project_folder, "commit", "-qam", "look")
    answers = [f"It says {PRINTED}-1.\n\n{WRONG}", RIGHT]
    env = {"TOKEN": TOKEN, "CODE_COMMIT_KEY_COMMAND": program}
    with FakeServer(
        answers, [Fault("status", status=400, body={"error": {"message": f"no {TOKEN} {PRINTED}-0"}})]
    ) as server:
        headers = f'X-Token = {{env = "TOKEN"}}\nX-File = {{file = "{user}/t"}}\n'
        write(user, f'model = "chat:m"\nbase_url = "{server.url}/v1"\nverbose = true\n[headers]\n{headers}')
        failed = run_code_commit(project_folder, "--sandbox", "off", env=env)
        done = run_code_commit(project_folder, "--sandbox", "off", "--json", env=env)
    assert (failed.returncode, done.returncode) == (3, 0), done.stderr
    sent = server.requests[-1].headers
    assert (sent["authorization"], sent["x-token"], sent["x-file"]) == (f"Bearer {PRINTED}-1", TOKEN, FILED)
    assert (tmp_path / "calls").read_bytes() == b"xx", "once for each run"
    page = run_code_commit(project_folder, "log", "--html", str(tmp_path / "page.html"), env=env)
    shown = [
        run_code_commit(project_folder, *words.split(), env=env)
        for words in ("log", "log --json", "log latest", "diff")
    ]
    told = "".join(each.stdout + each.stderr for each in (failed, done, page, *shown))
    files = [path for path in project_folder.rglob("*") if path.is_file()]
    text = told + "".join(path.read_text(errors="replace") for path in [*files, tmp_path / "page.html"])
    for secret in secrets:
        assert secret not in text, secret
        assert secret.encode().hex() not in text
    built = next(project_folder.glob("agent-config/logs/*/1-build.txt")).read_text()
    assert ("PATH" in built, "TOKEN" in built, "a process shows it" in built) == (True, False, False)
    prompts = json.dumps([request.body for request in server.requests])
    assert not any(secret in prompts for secret in secrets)


@pytest.mark.parametrize("mode", ["guard", "strict"])
def test_no_build_in_a_sandbox_reads_the_files(mode, project_folder, user, tmp_path, needs_bwrap, run_code_commit: Run):
    (tmp_path / "secret").mkdir()
    for name in ("token", "client.key"):
        (tmp_path / "secret" / name).write_text(FILED)
        (tmp_path / "secret" / name).chmod(0o600)
    write(
        user,
        f'model = "replay:agent-config/recorded"\nclient_key = "{tmp_path}/secret/client.key"\n'
        f'[headers]\nX-File = {{file = "{tmp_path}/secret/token"}}\n',
    )
    recorded = project_folder / "agent-config" / "recorded"
    recorded.mkdir()
    (recorded / "1-response.txt").write_text(RIGHT)
    look = f"cat {tmp_path}/secret/* | tr 0-9 a-j"
    (project_folder / "build.sh").write_text(f"#!/bin/sh\n{look}\ngrep -q '^ok$' ok.txt\n")
    git(project_folder, "commit", "-qam", "look")
    done = run_code_commit(project_folder, "--sandbox", mode)
    assert done.returncode == 0, done.stderr
    assert "tok-file" not in (the_log(project_folder) / "1-build.txt").read_text()


STAGES = {
    "the request": (WAYS["chat"], "call"),
    "the job": (WAYS["responses"], "call"),
    "a poll": (WAYS["responses"], "poll"),
}


@pytest.mark.parametrize(("way", "stage"), STAGES.values(), ids=STAGES)
def test_a_token_that_expires_in_mid_run_is_fetched_anew(
    way, stage, project_folder, user, tmp_path, run_code_commit: Run
):
    program = write_program(tmp_path / "bin", numbered(tmp_path))
    expired = Fault(
        "status", stage, status=401, body={"error": {"message": "token expired", "code": "invalid_api_key"}}
    )
    with FakeServer([RIGHT], [expired]) as server:
        write(user, f'model = "{way.provider}:{way.model}"\nbase_url = "{server.base_url(way.provider)}"\n'
                    f'key_command = ["{program}"]\n')  # fmt: skip
        done = run_code_commit(project_folder, "--sandbox", "off")
    assert done.returncode == 0, done.stderr
    keys = [request.headers["authorization"][-1] for request in server.requests]
    assert (keys[0], keys[-1], (tmp_path / "calls").read_bytes()) == ("0", "1", b"xx")
    made = [request for request in server.requests if request.method == "POST"]
    assert len(made) == (2 if stage == "call" else 1), "no answer is asked for twice"


def test_a_key_command_that_fails_is_exit_code_2_before_anything_is_sent_and_3_after(
    project_folder, user, tmp_path, run_code_commit: Run
):
    with FakeServer([RIGHT], [Fault("status", status=401, body={"error": {"message": "expired"}})]) as server:
        script = (
            f"import pathlib, sys; f = pathlib.Path('{tmp_path}/once'); sys.exit('gone') if f.exists() else f.touch(); "
        )
        program = write_program(tmp_path / "bin", f"{script}print('{PRINTED}')")
        write(user, f'model = "chat:m"\nbase_url = "{server.base_url("chat")}"\nkey_command = "{program}"\n'
                    "[prices.m]\ninput = 1\noutput = 1\n")  # fmt: skip
        checked = run_code_commit(project_folder, "check")
        assert (checked.returncode, (tmp_path / "once").exists()) == (0, False), "check runs no program"
        after = run_code_commit(project_folder, "--sandbox", "off")
        before = run_code_commit(project_folder, "--sandbox", "off")
    assert (after.returncode, before.returncode, len(server.requests)) == (3, 2, 1)
    record = json.loads((the_log(project_folder) / "run.json").read_text())
    assert record["totals"]["unsettled_usd"] == 0, "nothing may have been paid"
    for done in (after, before):
        assert "key_command: print-key ended with exit code 1: gone" in done.stderr


def test_a_key_that_is_refused_again_is_an_error(project_folder, user, tmp_path, run_code_commit: Run):
    program = write_program(tmp_path / "bin", numbered(tmp_path))
    refused = Fault("status", times=9, status=401, body={"error": {"message": "who are you"}})
    with FakeServer([RIGHT], [refused]) as server:
        write(user, f'model = "chat:m"\nbase_url = "{server.base_url("chat")}"\nkey_command = "{program}"\n')
        done = run_code_commit(project_folder, "--sandbox", "off")
    assert (done.returncode, len(server.requests)) == (3, 2)
    assert "the key that key_command printed is refused" in done.stderr


def test_a_redirecting_gateway_gets_the_headers_and_nobody_else(project_folder, user, run_code_commit: Run):
    with FakeServer([RIGHT]) as other:
        moved = Fault("status", times=9, status=307, headers={"location": f"{other.url}/v1/chat/completions"}, body={})
        with FakeServer([RIGHT], [moved]) as server:
            write(user, f'model = "chat:m"\nbase_url = "{server.url}/v1"\n[headers]\nX-Token = {{env = "TOKEN"}}\n')
            done = run_code_commit(project_folder, "--sandbox", "off", env={"TOKEN": TOKEN})
    assert (done.returncode, other.requests, server.requests[0].headers["x-token"]) == (3, [], TOKEN)


def test_resume_takes_neither_program_nor_headers_from_a_log(project_folder, user, tmp_path, run_code_commit: Run):
    """A log that somebody else wrote names both; the user's own settings, variable or option have to name them anew."""
    program = write_program(tmp_path / "bin", f"open('{tmp_path}/ran', 'w'); print('{PRINTED}')")
    with FakeServer(
        [RIGHT, RIGHT], [Fault("status", times=1, status=403, body={"error": {"message": "no"}})]
    ) as server:
        address = ["--model", "chat:m", "--base-url", server.base_url("chat"), "--sandbox", "off"]
        assert run_code_commit(project_folder, *address).returncode == 3
        record = the_log(project_folder) / "run.json"
        forged = {"key_command": program, "key_header": "x-k", "headers": {"X-Evil": {"env": "TOKEN"}}}
        told = json.loads(record.read_text())
        assert not forged.keys() & told["options"].keys()
        record.write_text(json.dumps(told | {"options": told["options"] | forged}))
        shutil.copytree(project_folder, tmp_path / "copy")
        done = run_code_commit(project_folder, "resume", env={"TOKEN": TOKEN})
        assert (done.returncode, (tmp_path / "ran").exists()) == (0, False), done.stderr
        assert not server.requests[-1].headers.keys() & {"x-evil", "x-k", "authorization"}
        named = ["--key-command", program, "--base-url", server.base_url("chat")]
        done = run_code_commit(tmp_path / "copy", "resume", *named)
    assert done.returncode == 0, done.stderr
    assert server.requests[-1].headers["authorization"] == f"Bearer {PRINTED}"


def test_a_resumed_run_looks_the_headers_up_anew(project_folder, user, run_code_commit: Run):
    with FakeServer([RIGHT], [Fault("status", times=1, status=403, body={"error": {"message": "no"}})]) as server:
        write(user, f'model = "chat:m"\nbase_url = "{server.url}/v1"\n[headers]\nX-Token = {{env = "TOKEN"}}\n')
        assert run_code_commit(project_folder, "--sandbox", "off", env={"TOKEN": TOKEN}).returncode == 3
        write(project_folder / "agent-config", "max_repair = 1")  # `resume` does not read it
        done = run_code_commit(project_folder, "resume", env={"TOKEN": FILED})
    assert done.returncode == 0, done.stderr
    assert [request.headers["x-token"] for request in server.requests] == [TOKEN, FILED]


@pytest.mark.parametrize(("address", "gets_it"), [(OURS, True), (THEIRS, False)])
def test_resume_takes_a_project_s_headers_for_the_address_beside_them_alone(address, gets_it, project, user):
    write(project.agent_config, f'model = "chat:m"\nbase_url = "{OURS}"\n[headers]\nX-Team = "web"\n')
    record = Settings(model="chat:m", base_url=f"chat:{address}").as_record()
    assert bool(reach_in(project, logged=record).headers) == gets_it


def test_a_certificate_and_its_key_are_files_of_the_users(
    project, project_folder, user, tmp_path, run_code_commit: Run
):
    (tmp_path / "c.pem").write_text("x")
    base = f'model = "chat:m"\nbase_url = "{OURS}"\n'
    for more, told in {
        f'client_key = "{tmp_path}/c.pem"': "client_key is set without client_cert",
        'client_cert = "c.pem"': "client_cert: c.pem is a relative path",
        'client_cert = "/none/c.pem"': "client_cert: /none/c.pem is not a file",
    }.items():
        write(user, base + more)
        with pytest.raises(NotSetUpError, match=told):
            reach_in(project)
    write(user, f'model = "chat:m"\nbase_url = "http://127.0.0.1:1/v1"\nclient_cert = "{tmp_path}/c.pem"\n')
    with pytest.raises(NotSetUpError, match="client_cert is for https"):
        reach_in(project)
    write(user, f'{base}client_cert = "{tmp_path}/c.pem"\nclient_key = "{tmp_path}/c.pem"\n')
    assert (reach_in(project).client_cert, reach_in(project).client_key) == (tmp_path / "c.pem",) * 2
    checked = run_code_commit(project_folder, "check")
    assert "PROBLEM  certificate " in checked.stdout, "before a run asks, and before its first build"
    with pytest.raises(NotSetUpError, match=r"client_cert cannot be used .* or the key with client_key"):
        open_way(WAYS["chat"], OURS, client_cert=str(tmp_path / "c.pem"))


def test_the_address_of_the_vendors_is_kept_for_a_model_of_another_provider(project, user):
    write(user, f'model = "chat:m"\nbase_url = "{OURS}"\n{USERS}')
    write(project.agent_config, 'model = "gemini"\n')
    settings = load_settings(project, {}, {})
    choice = choose_model(settings.model)
    assert check_base_url(choice, settings).startswith("https://generativelanguage.googleapis.com")
    assert reach_of(choice, settings, {}).headers == {}


@pytest.mark.parametrize("own", [USERS, 'key_command = "sh"', '[headers]\nX-Token = {env = "TOKEN"}\n'])
def test_a_way_without_a_model_is_told_in_place_of_a_key_that_is_missing(
    own, user, project_folder, run_code_commit: Run
):
    write(user, own)
    (problem,) = api.check(project_folder)
    assert "needs an address: set model, or model and base_url, in the same file" in problem
    (project_folder / "ok.txt").write_text("ok\n")
    assert run_code_commit(project_folder, "repair").returncode == 0, "a build that passes needs no LLM"
