"""The user's own settings and keys: below the project's, never of the project, and hidden from its build."""

import json
import os
import re
import stat
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from command import Run, git, recorded, replay, the_log
from fake_server import FakeServer

from code_commit.errors import NotSetUpError
from code_commit.fleet.builds import TaskProcesses
from code_commit.fleet.tasks import FleetTask, with_defaults_of_user
from code_commit.llm.addresses import require_address
from code_commit.llm.keys import find_secrets, load_keys
from code_commit.llm.models import check_base_url, choose_model
from code_commit.llm.vendor import ApiKey, LlmConfig
from code_commit.project import Project, find_project, find_user_folder
from code_commit.settings import BOOLEANS, COMMAND_LINE, ENVIRONMENT, LOG, USER, Facet, Price, Settings, settings_for
from code_commit.sources import explain_overruled, load_settings, read_user_settings

KEY, OTHER_KEY = "sk-user-0123456789", "sk-other-0123456789"
ELSEWHERE = "https://elsewhere.example/v1"
RIGHT = "^^^ok.txt\nok\n^^^end\n"


@pytest.fixture
def project(project_folder: Path) -> Project:
    return find_project(project_folder)


def write(folder: Path, text: str) -> None:
    (folder / "config.toml").write_text(text)


def give_key(folder: Path, name: str = "openai-key.txt", key: str = KEY) -> None:
    (folder / name).write_text(key)
    (folder / name).chmod(0o600)


def said_by(done) -> str:
    return " ".join((done.stderr + done.stdout).split())


def test_option_before_variable_before_project_before_user_before_default(project, user):
    write(user, "max_repairs = 9\nkeep_days = 7\n")
    assert load_settings(project, {}, {}).max_repairs == 9
    write(project.agent_config, "max_repairs = 8\n")
    settings = load_settings(project, {"quiet": True}, {"CODE_COMMIT_STRICT": "1"})
    assert (settings.max_repairs, settings.keep_days) == (8, 7)
    said = (
        "quiet from options; strict from environment; max_repairs from config.toml; keep_days from your own config.toml"
    )
    assert settings.provenance == said
    assert load_settings(project, {"max_repairs": 6}, {"CODE_COMMIT_MAX_REPAIRS": "7"}).max_repairs == 6


def test_protect_adds_tables_merge_by_key_other_lists_are_replaced(project, user):
    write(
        user,
        'protect = ["a", "b"]\nallow = ["x"]\n[prices.m]\ninput = 1\noutput = 1\n[prices.n]\ninput = 2\noutput = 2\n',
    )
    write(project.agent_config, 'protect = ["b", "c"]\nallow = ["y"]\n[prices.m]\ninput = 3\noutput = 3\n')
    settings = load_settings(project, {"protect": ["d"]}, {})
    assert (settings.protect, settings.allow) == (("a", "b", "d"), ("y",))
    assert settings.prices == {"m": Price(3, 3), "n": Price(2, 2)}
    assert settings.provenance == (
        "protect from options; protect, allow, prices from config.toml; protect, prices from your own config.toml"
    )
    resumed = load_settings(project, {}, {}, Settings(protect=("d",)).as_record())
    assert (resumed.protect, resumed.prices) == (("d",), {}), "a log has all that its run had"


def test_an_option_stands_before_a_variable_in_a_resumed_run_too(project):
    options, variables = {"key_command": "option"}, {"CODE_COMMIT_KEY_COMMAND": "variable"}
    resumed = load_settings(project, options, variables, Settings().as_record())
    assert (resumed.key_command, resumed.source_of("key_command")) == ("option", COMMAND_LINE)


LOGS = {
    "a log": {},
    "one of a version that had a setting less": {"build_timeout"},
    "one without most": {"max_cost", "protect"},
}


@pytest.mark.parametrize("lacks", LOGS.values(), ids=LOGS)
def test_a_log_says_who_named_an_address_or_a_program_whatever_it_lacks(lacks, project):
    """What it lacks a resumed run takes as a new run does; that it is a log does not hang on it."""
    logged = Settings(model="openai", base_url=ELSEWHERE, max_cost=1.0).as_record()
    logged = {name: value for name, value in logged.items() if name not in lacks}
    write(project.agent_config, "max_cost = 5\nmax_repairs = 9\n")
    settings = load_settings(project, {"max_repairs": 1}, {"CODE_COMMIT_BUILD_TIMEOUT": "7"}, logged)
    assert settings.source_of("base_url") == LOG
    assert settings.source_of("build_timeout") == (ENVIRONMENT if "build_timeout" in lacks else LOG)
    assert (settings.max_cost, settings.max_repairs) == (5 if "max_cost" in lacks else 1, 1)
    with pytest.raises(NotSetUpError, match="which only the log of this run names"):
        require_address(LlmConfig(choose_model("openai"), ApiKey("openai", KEY, "a variable"), settings), project)
    with pytest.raises(NotSetUpError, match="the log of this run names the program command:x"):
        load_settings(project, {}, {}, logged | {"model": "command:x"})


def test_an_address_named_to_resume_is_for_the_model_of_the_log(project):
    logged = Settings(model="openai", base_url="https://old.example").as_record()
    settings = load_settings(project, {"base_url": ELSEWHERE}, {}, logged)
    assert settings.source_of("base_url") == COMMAND_LINE
    assert check_base_url(choose_model("openai"), settings) == ELSEWHERE


def test_a_project_that_overrules_what_guards_the_user_is_told(project_folder, user, run_code_commit: Run):
    """The project's config.toml may be that of an archive's author."""
    loose = 'sandbox = "off"\nmax_cost = 90\napprove = false\nmax_repairs = 2\nrollback = true\n'
    write(project_folder / "agent-config", loose)
    write(user, 'sandbox = "strict"\nmax_cost = 1\napprove = true\nmax_repairs = 1\nrollback = true\n')
    words = 'sets max_cost = 90.0, approve = false, sandbox = "off", which overrides your own settings'
    assert words in said_by(run_code_commit(project_folder, *recorded(project_folder, RIGHT)))
    assert "overrules" not in said_by(
        run_code_commit(project_folder, "check", env={"CODE_COMMIT_USER_SETTINGS": "off"})
    )


STRICT = {
    "the user's": ('sandbox = "strict"', {}, True),
    "a variable's": ("", {"CODE_COMMIT_SANDBOX": "strict"}, True),
    "the user's, who opens it": (
        'sandbox = "strict"\nsandbox_caches = ["/tmp/cache"]\nsandbox_network = true',
        {},
        False,
    ),
    "none": ("", {}, False),
}


@pytest.mark.parametrize(("own", "variables", "is_told"), STRICT.values(), ids=STRICT)
def test_a_hole_that_the_project_makes_into_a_strict_sandbox_is_told(own, variables, is_told, project, user):
    write(user, own)
    write(project.agent_config, 'sandbox_caches = ["/tmp/cache"]\nsandbox_network = true\n')
    told = explain_overruled(load_settings(project, {}, variables))
    assert told == ([told[0]] if is_told else [])
    assert not is_told or 'sandbox_network = true, sandbox_caches = ["/tmp/cache"],' in told[0]
    write(project.agent_config, 'sandbox = "strict"\nsandbox_network = true\n')
    assert not explain_overruled(load_settings(project, {}, variables)), "it asked for the sandbox itself"


@pytest.mark.parametrize(
    "line",
    [*(f'{name} = "/x"' for name in settings_for(Facet.OWN)), '[headers]\nX = {env = "Y"}', 'key_header = "X"\nz = 1'],
)
def test_resume_passes_over_settings_of_a_project_that_a_run_refuses(line, project):
    write(project.agent_config, line)
    with pytest.raises(NotSetUpError, match=r"agent-config/config\.toml: "):
        load_settings(project, {}, {})
    logged = Settings(model="chat:m").as_record()
    assert load_settings(project, {}, {}, logged)._replace(sources={}) == Settings("chat:m")


SWITCH = {"off": False, "No": False, "false": False, "0": False, "on": True, "YES": True, "true": True, "1": True}


@pytest.mark.parametrize(("value", "is_read"), {**SWITCH, "": True, "/none": None}.items())
def test_the_variable_that_turns_it_off_is_a_switch(value, is_read, project, user):
    write(user, "max_repairs = 9\n")
    variables = {"CODE_COMMIT_USER_SETTINGS": value}
    with pytest.raises(NotSetUpError, match="must be off or on") if is_read is None else nullcontext():
        assert load_settings(project, {}, variables).max_repairs == (9 if is_read else 3)


def test_the_document_names_every_value_of_that_switch():
    document = (Path(__file__).parents[1] / "docs" / "settings.md").read_text("utf-8")
    told = document.partition("- `CODE_COMMIT_USER_SETTINGS=off`")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", told)) == {value.lower() for value in SWITCH} == BOOLEANS.keys() - {""}


def test_what_is_wrong_in_it_is_told_with_its_path(project, user):
    write(user, "max_repair = 1\n")
    with pytest.raises(NotSetUpError, match=r"~/\.config/code-commit/config\.toml: there is no setting 'max_repair'"):
        load_settings(project, {}, {})


def test_a_key_of_the_project_then_a_variable_then_the_users_own(project, user):
    give_key(user)
    key = load_keys(project, {})["openai"]
    assert (key.value, key.source, key.in_project) == (KEY, "~/.config/code-commit/openai-key.txt", False)
    assert find_secrets(project, {}) == [KEY]
    assert load_keys(project, {"OPENAI_API_KEY": OTHER_KEY})["openai"].source == "OPENAI_API_KEY"
    give_key(project.agent_config, key=OTHER_KEY)
    assert load_keys(project, {})["openai"].source == "agent-config/openai-key.txt"


def test_a_users_key_file_that_others_can_read_is_refused(project, user):
    give_key(user)
    user.chmod(0o755)
    (user / "openai-key.txt").chmod(0o644)
    with pytest.raises(NotSetUpError, match=r"chmod 600 ~/\.config/code-commit/openai-key\.txt"):
        load_keys(project, {})


def test_xdg_config_home_is_another_place(project, user, tmp_path):
    give_key(user)
    (tmp_path / "config" / "code-commit").mkdir(parents=True)
    write(tmp_path / "config" / "code-commit", "max_repairs = 5\n")
    variables = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    assert load_settings(project, {}, variables).max_repairs == 5
    assert not load_keys(project, variables)


def test_a_relative_place_is_not_read_and_said(project, user, monkeypatch):
    write(user, "max_repairs = 9\n")
    (project.root / "conf" / "code-commit").mkdir(parents=True)
    write(project.root / "conf" / "code-commit", "max_repairs = 5\n")
    monkeypatch.chdir(project.root)
    assert load_settings(project, {}, {"XDG_CONFIG_HOME": "conf"}).max_repairs == 9
    assert (
        "$XDG_CONFIG_HOME is conf, a relative path"
        in find_user_folder(project, {"XDG_CONFIG_HOME": "conf"}).warnings[0]
    )


INSIDE = {
    "it lies in the project": lambda root, _: root / "conf",
    "a link leads into the project": lambda root, outside: linked(outside / "link", root / "conf"),
    "a link in the project leads out": lambda root, outside: linked(root / "link", outside / "conf"),
}


def linked(link: Path, target: Path) -> Path:
    target.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target)
    return link


@pytest.mark.parametrize("place", INSIDE.values(), ids=INSIDE)
def test_what_an_answer_could_write_is_not_read_and_said(place, project, tmp_path, run_code_commit: Run):
    home = place(project.root, tmp_path)
    (home / "code-commit").mkdir(parents=True)
    write(home / "code-commit", "max_repairs = 5\n")
    give_key(home / "code-commit")
    variables = {"XDG_CONFIG_HOME": str(home)}
    assert load_settings(project, {}, variables).max_repairs == 3
    assert not load_keys(project, variables)
    assert "so your own settings and keys there are not read" in find_user_folder(project, variables).warnings[0]
    done = run_code_commit(project.root, "check", *replay(project.root), env=variables)
    assert "so your own settings and keys there are not read" in said_by(done)


def test_a_home_that_is_the_project_has_no_settings_of_the_user(project):
    (project.root / ".config" / "code-commit").mkdir(parents=True)
    write(project.root / ".config" / "code-commit", "max_repairs = 5\n")
    before = os.environ["HOME"]
    os.environ["HOME"] = str(project.root)
    try:
        assert load_settings(project, {}, {}).max_repairs == 3
    finally:
        os.environ["HOME"] = before


def test_the_top_of_the_work_tree_counts_not_the_projects_folder_alone(project, tmp_path):
    part = project.root / "part"
    (part / "agent-config").mkdir(parents=True)
    (project.root / "conf" / "code-commit").mkdir(parents=True)
    write(project.root / "conf" / "code-commit", "max_repairs = 5\n")
    variables = {"XDG_CONFIG_HOME": str(project.root / "conf")}
    assert load_settings(find_project(part), {}, variables).max_repairs == 3
    assert load_settings(Project(part), {}, variables).max_repairs == 3, "before git is asked, too"


def test_a_file_of_it_that_links_into_the_project_is_not_read_and_said(project, user):
    give_key(project.root, "k")
    (user / "openai-key.txt").symlink_to(project.root / "k")
    write(project.root, "max_repairs = 5\n")
    (user / "config.toml").symlink_to(project.root / "config.toml")
    assert load_settings(project, {}, {}).max_repairs == 3
    assert not load_keys(project, {})
    assert [line.split()[0] for line in find_user_folder(project).warnings] == [
        "~/.config/code-commit/config.toml",
        "~/.config/code-commit/openai-key.txt",
    ]


def test_a_project_beside_it_in_the_same_folder_is_a_project_as_any(project_folder, user, run_code_commit: Run):
    write(user, "max_repairs = 9\n")
    project_folder.rename(user.parent / "project")
    root = user.parent / "project"
    assert load_settings(find_project(root), {}, {}).max_repairs == 9
    assert run_code_commit(root, *replay(root)).returncode == 0


ARCHIVES = {
    "its address": f'model = "openai"\nbase_url = "{ELSEWHERE}"\n',
    "its address for the user's model": f'base_url = "{ELSEWHERE}"\n',
    "its address with the provider": f'base_url = "openai:{ELSEWHERE}"\n',
    "its fallback's": f'model = "replay:none"\nfallback_model = "openai"\nfallback_base_url = "{ELSEWHERE}"\n',
}


@pytest.mark.parametrize("config", ARCHIVES.values(), ids=ARCHIVES)
def test_no_key_of_the_users_goes_to_an_address_of_an_unpacked_archive(
    config, project_folder, user, run_code_commit: Run
):
    write(user, 'model = "openai:gpt-6.2-sol"\n')
    give_key(user)
    (project_folder / "none").mkdir()
    write(project_folder / "agent-config", config)
    done = run_code_commit(project_folder, "--llm-timeout", "1", env={"HTTPS_PROXY": "http://127.0.0.1:9"})
    assert done.returncode == 2, done.stderr
    assert KEY not in said_by(done)


def test_an_address_of_the_users_needs_no_confirmation_and_serves_every_project(
    project_folder, user, run_code_commit: Run
):
    with FakeServer(answers=[RIGHT]) as server:
        write(user, f'model = "chat:m"\nbase_url = "{server.base_url("chat")}"\n')
        give_key(user, "chat-key.txt")
        done = run_code_commit(project_folder, "--sandbox", "off", "--verbose")
    assert done.returncode == 0, done.stderr
    assert "settings: sandbox, verbose from options; model, base_url from your own config.toml" in said_by(done)
    assert server.requests[-1].headers["authorization"] == f"Bearer {KEY}"


def test_an_address_of_a_log_that_the_users_own_settings_name_too_is_confirmed(project, user):
    write(user, f'model = "openai"\nbase_url = "{ELSEWHERE}"\n')
    give_key(user)
    key = load_keys(project, {})["openai"]
    record = Settings(model="openai:gpt-6.2-sol", base_url=ELSEWHERE).as_record()
    settings = load_settings(project, {}, {}, record)
    assert require_address(LlmConfig(choose_model("openai"), key, settings), project) == ELSEWHERE
    write(user, f'model = "chat:m"\nbase_url = "{ELSEWHERE}"\n')
    with pytest.raises(NotSetUpError, match="which only the log of this run names"):
        require_address(LlmConfig(choose_model("openai"), key, load_settings(project, {}, {}, record)), project)


def test_the_users_address_is_for_the_models_of_its_provider_alone(project, user):
    write(user, f'model = "chat:m"\nbase_url = "{ELSEWHERE}"\n')
    write(project.agent_config, 'model = "anthropic"\n')
    settings = load_settings(project, {}, {})
    assert check_base_url(choose_model(settings.model), settings) == "https://api.anthropic.com/v1"
    write(project.agent_config, 'model = "chat:other"\n')
    settings = load_settings(project, {}, {})
    assert check_base_url(choose_model(settings.model), settings) == ELSEWHERE
    write(user, f'model = "openai"\nbase_url = "{ELSEWHERE}"\n')
    with pytest.raises(NotSetUpError, match="is for openai, but the model is chat:other"):
        check_base_url(choose_model("chat:other"), load_settings(project, {}, {}))


def test_check_says_where_each_value_comes_from(project_folder, user, run_code_commit: Run):
    write(user, "max_cost = 2\n")
    write(project_folder / "agent-config", "max_repairs = 1\n")
    done = run_code_commit(project_folder, "check", *replay(project_folder), env={"CODE_COMMIT_STRICT": "1"})
    said = "strict from environment; max_repairs from config.toml; max_cost from your own config.toml"
    assert said in said_by(done)


def test_init_user_writes_it_once(project_folder, run_code_commit: Run):
    done = run_code_commit(project_folder, "init", "--user")
    file = Path(os.environ["HOME"], ".config/code-commit/config.toml")
    assert (done.returncode, stat.S_IMODE(file.parent.stat().st_mode)) == (0, 0o700)
    assert "wrote ~/.config/code-commit/config.toml" in done.stdout
    assert load_settings(find_project(project_folder), {}, {}) == Settings(), "it changes nothing by itself"
    file.write_text("max_repairs = 9\n")
    again = run_code_commit(project_folder, "init", "--user")
    assert (again.returncode, file.read_text()) == (0, "max_repairs = 9\n")
    assert again.stdout == "~/.config/code-commit/config.toml exists already; nothing was written.\n"


@pytest.mark.parametrize("place", ["home", "project"])
def test_init_user_writes_it_in_the_home_folder_too_and_says_where_it_is_not_read(
    place, project_folder, run_code_commit: Run
):
    """Most terminals begin in the home folder, which is no project."""
    there = Path(os.environ["HOME"]) if place == "home" else project_folder
    there.mkdir(exist_ok=True)
    done = run_code_commit(there, "init", "--user", env={"XDG_CONFIG_HOME": str(there / "conf")})
    assert (done.returncode, (there / "conf/code-commit/config.toml").is_file()) == (0, True), done.stderr
    assert "so your own settings and keys there are not read for it" in " ".join(done.stdout.split())


@pytest.mark.parametrize("mode", ["guard", "strict"])
@pytest.mark.parametrize("place", ["home", "elsewhere", "around the project"])
def test_no_build_in_a_sandbox_sees_it(mode, place, project_folder, user, tmp_path, needs_bwrap, run_code_commit: Run):
    folder = {
        "home": user,
        "elsewhere": tmp_path / "conf" / "code-commit",
        "around the project": tmp_path / "code-commit",
    }[place]
    folder.mkdir(parents=True, exist_ok=True)
    root = project_folder
    if place == "around the project":
        root = project_folder.rename(folder / "project")
    write(folder, "max_repairs = 0\n")
    (tmp_path / "dotfiles").mkdir()
    give_key(tmp_path / "dotfiles", "k")
    (folder / "openai-key.txt").symlink_to(tmp_path / "dotfiles" / "k")
    look = f"cat {folder}/config.toml {tmp_path}/dotfiles/k; touch {folder}/x; true"
    (root / "build.sh").write_text(f"#!/bin/sh\n{look}\ngrep -q '^ok$' ok.txt\n")
    git(root, "commit", "-qam", "look")
    env = {"XDG_CONFIG_HOME": str(folder.parent)}
    done = run_code_commit(root, *recorded(root, RIGHT), "--sandbox", mode, env=env)
    built = next(the_log(root).glob("1-build.txt")).read_text()
    assert (done.returncode, "max_repairs" in built, KEY in built) == (0, False, False), built
    assert not (folder / "x").exists()


def test_a_fleets_client_reads_it_as_defaults_of_the_tasks(project, user):
    text = (
        f'model = "openai"\nbase_url = "{ELSEWHERE}"\nmax_repairs = 9\napprove = true\nprotect = ["a"]\nquiet = true\n'
    )
    write(user, f"{text}[prices.m]\ninput = 1\noutput = 1\n")
    own = read_user_settings(project, os.environ, [])
    one = FleetTask(id="1", repository="r", query="q", settings={"max_repairs": 1, "protect": ["b"]})
    two = FleetTask(id="2", repository="r", query="q", settings={"model": "anthropic"})
    first, second = (task.settings for task in with_defaults_of_user([one, two], own))
    assert first == {
        "model": "openai",
        "base_url": f"openai:{ELSEWHERE}",
        "max_repairs": 1,
        "protect": ("a", "b"),
        "prices": {"m": {"input": 1.0, "output": 1.0}},
    }
    assert (second["model"], "base_url" in second) == ("anthropic", False)
    assert with_defaults_of_user([one], {}) == [one]


def test_a_fleets_client_in_the_home_folder_reads_it_too(user, monkeypatch):
    write(user, "max_repairs = 9\n")
    monkeypatch.chdir(os.environ["HOME"])
    assert find_user_folder(Project(Path.cwd())).path is None
    assert read_user_settings(None, os.environ, []) == {"max_repairs": 9}


def test_what_of_it_no_worker_can_use_is_no_default(project, user):
    write(user, 'model = "chat:m"\nkey_command = "sh"\nclient_cert = "/c"\n[headers]\nX = {env = "Y"}\n')
    one = FleetTask(id="1", repository="r", query="q")
    (task,) = with_defaults_of_user([one], read_user_settings(project, os.environ, []))
    assert task.settings == {"model": "chat:m"}
    write(user, 'model = "command:sh"\n')
    own = read_user_settings(project, os.environ, [])
    with pytest.raises(NotSetUpError, match="a program as model, which no worker runs"):
        with_defaults_of_user([one], own)
    two = FleetTask(id="2", repository="r", query="q", settings={"model": "chat:n"})
    assert with_defaults_of_user([two], own)[0].settings == two.settings


def test_init_knows_a_model_with_a_key_command(project_folder, user, run_code_commit: Run):
    write(user, f'model = "chat:m"\nbase_url = "{ELSEWHERE}"\nkey_command = "sh -c false"\n')
    (project_folder / "build.sh").unlink()
    done = run_code_commit(project_folder, "init")
    assert "The LLM is set up: chat:m, with the key from key_command." in " ".join(done.stdout.split())


def test_a_fleets_worker_does_not_read_it(project, user):
    write(user, "max_repairs = 9\n")
    give_key(user)
    processes = TaskProcesses(FleetTask(id="1", repository="r", query="q"), lambda: True, lambda: None)
    look = "import json, os; print(json.dumps(dict(os.environ)))"
    variables = json.loads(processes.command([sys.executable, "-c", look], project.root).stdout)
    assert load_settings(project, {}, variables) == Settings()
    assert not load_keys(project, variables)
    assert read_user_settings(project, variables, []) == {}
    assert USER not in load_settings(project, {}, variables).sources


def test_a_model_of_the_fleets_options_comes_before_the_users_and_its_address(user, tmp_path, run_code_commit: Run):
    write(user, f'model = "command:sh"\nbase_url = "chat:{ELSEWHERE}"\n')
    task = {"id": "1", "repository": str(tmp_path), "query": "q", "setup": True, "build": "true"}
    (tmp_path / "tasks.jsonl").write_text(json.dumps(task))
    words = ["fleet", "tasks.jsonl", "--check", "--model", "replay:x"]
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "x")
    done = run_code_commit(tmp_path, *words)
    assert "names a program" not in said_by(done)
    done = run_code_commit(tmp_path, *words[:3])
    assert "your own settings name a program as model" in said_by(done)
