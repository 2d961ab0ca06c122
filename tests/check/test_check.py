"""What the preflight must not take for fine: a tree that git cannot judge, a build.sh that cannot start, a closed folder."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from command import CODE_COMMIT, Run, git, replay
from fake_server import FakeServer

from code_commit.check import RunInputs, inspect_run
from code_commit.project import find_project


@pytest.mark.parametrize("command", [[], ["check"], ["log"], ["undo"], ["rollup"], ["apply", "-"], ["demo"], ["init"]])
def test_without_git_nothing_begins(command: list[str], project_folder: Path, run_code_commit: Run, tmp_path: Path):
    done = run_code_commit(project_folder, *command, env={"PATH": str(tmp_path)})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("code-commit: git is not installed")
    assert done.stderr.count("\n") == 1


def link_instead(script: Path) -> None:
    script.rename(script.with_name("other.sh"))
    script.symlink_to("other.sh")


UNSTARTABLE: dict[str, tuple[Callable[[Path], object], str]] = {
    "Windows line ends": (lambda script: script.write_bytes(b"#!/bin/sh\r\nexit 0\r\n"), "Windows line endings"),
    "nothing but comments": (lambda script: script.write_text("#!/bin/sh\n\n  # make\n"), "it would always pass"),
    "no interpreter": (lambda script: script.write_text("#!/no/such/shell\n"), "/no/such/shell does not exist"),
    "no interpreter on the PATH": (
        lambda script: script.write_text("#!/usr/bin/env no-such-shell\n"),
        "not on the PATH",
    ),
    "a link": (link_instead, "is a link"),
    "a dangling link": (lambda script: [script.unlink(), script.symlink_to("gone")], "is a link"),
}


@pytest.mark.parametrize(("spoil", "told"), UNSTARTABLE.values(), ids=UNSTARTABLE)
def test_a_build_script_that_cannot_start_is_told_before_anything_is_sent(
    project_folder: Path, run_code_commit: Run, spoil: Callable[[Path], object], told: str
):
    spoil(project_folder / "build.sh")
    options = replay(project_folder)
    checked = run_code_commit(project_folder, "check", *options)
    assert (checked.returncode, told in checked.stdout) == (2, True), checked.stdout
    done = run_code_commit(project_folder, *options)
    assert (done.returncode, told in done.stderr) == (2, True), done.stderr
    assert not (project_folder / "agent-config" / "logs").exists()


def without_roots_rights() -> list[str]:
    """Return what makes a command of root obey the modes of files, as everybody else's do."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root may write everywhere, and setpriv is not here to take that away")
    rights = "-dac_override,-dac_read_search"
    return ["setpriv", f"--bounding-set={rights}", f"--inh-caps={rights}"]


def test_an_agent_config_that_may_not_be_written_to_is_told(project_folder: Path):
    command = [*without_roots_rights(), *CODE_COMMIT, "check", *replay(project_folder)]
    config = project_folder / "agent-config"
    found = {}
    for mode in (0o700, 0o500):
        config.chmod(mode)
        done = subprocess.run(command, cwd=project_folder, capture_output=True, text=True, check=False)
        found[mode] = done.returncode, "agent-config cannot be written to: Permission denied" in done.stdout
    config.chmod(0o700)
    assert found == {0o700: (0, False), 0o500: (2, True)}


@pytest.mark.parametrize("command", ["check", "run"])
def test_a_folder_in_which_agent_config_cannot_be_made_is_told(command: str, project_folder: Path):
    words = [*without_roots_rights(), *CODE_COMMIT, command, "-m", "x", *replay(project_folder)]
    shutil.rmtree(project_folder / "agent-config")
    project_folder.chmod(0o500)
    done = subprocess.run(words, cwd=project_folder, capture_output=True, text=True, check=False)
    project_folder.chmod(0o700)
    told = "this folder cannot be written to: Permission denied; make it writable: chmod u+w ."
    assert (done.returncode, told in done.stdout + done.stderr) == (2, True), done


@pytest.mark.slow
def test_what_is_closed_is_told_with_the_command_that_opens_it(project_folder: Path):
    command = [*without_roots_rights(), *CODE_COMMIT, *replay(project_folder)]
    key, logs = project_folder / "agent-config/chat-key.txt", project_folder / "agent-config/logs"
    key.touch(0)
    logs.mkdir(0o500)
    for step in ("make it readable: chmod u+r agent-config/chat-key.txt", f"make it writable: chmod u+w {logs}"):
        done = subprocess.run(command, cwd=project_folder, capture_output=True, text=True, check=False)
        assert (done.returncode, step in done.stderr) == (2, True), done.stderr
        key.unlink(missing_ok=True)
    logs.chmod(0o700)


def test_each_mistake_of_a_file_is_a_problem_of_its_own(project_folder: Path, run_code_commit: Run):
    (project_folder / "agent-config/config.toml").write_text(
        "max_repair = 1\nstrict = 7\nsandbox = 'on'\nallow = ['']\n"
    )
    checked = run_code_commit(project_folder, "check", *replay(project_folder))
    assert "\n4 problems to solve.\n" in checked.stdout, checked.stdout
    done = run_code_commit(project_folder, *replay(project_folder))
    assert "4 problems to solve:" in done.stderr, done.stderr


def test_a_model_whose_name_is_nearly_a_known_one_is_told(project_folder: Path, run_code_commit: Run):
    for name, is_told in {"gpt-6.2-soll": True, "gpt-6.2-sol": False, "gpt-9-whatever": False}.items():
        checked = run_code_commit(
            project_folder, "check", "--model", f"openai:{name}", env={"OPENAI_API_KEY": "k" * 20}
        )
        assert ("or its price; did you mean 'gpt-6.2-sol'?" in checked.stdout) == is_told, checked.stdout
        is_unknown = name != "gpt-6.2-sol"
        assert (f"the context window of openai:{name} is unknown" in checked.stdout) == is_unknown, checked.stdout


def test_a_task_may_begin_with_what_looks_like_an_option(project_folder: Path, run_code_commit: Run):
    done = run_code_commit(project_folder, "-m", "--sum is broken, mend it", *replay(project_folder))
    assert done.returncode == 0, done.stderr


def test_one_byte_is_no_plural(project_folder: Path, run_code_commit: Run):
    (project_folder / "agent-config/query.txt").write_text("x")
    assert "query.txt       1 byte\n" in run_code_commit(project_folder, "check").stdout


def test_a_key_file_that_others_can_read_is_no_missing_key_too(project_folder: Path, run_code_commit: Run):
    (project_folder / "agent-config").chmod(0o755)
    (project_folder / "agent-config/openai-key.txt").write_text("k" * 20)
    (project_folder / "agent-config/openai-key.txt").chmod(0o644)
    done = run_code_commit(project_folder, "check", "--sandbox", "off")
    assert (done.returncode, done.stdout.count("PROBLEM")) == (2, 1), done.stdout
    assert "chmod 600 agent-config/openai-key.txt" in done.stdout
    done = run_code_commit(project_folder, "check", "--model", "openai", "--sandbox", "off")
    assert (done.returncode, done.stdout.count("PROBLEM")) == (2, 1), done.stdout


def test_a_limit_of_cost_without_a_price_is_told_before_anything_is_sent(project_folder: Path, run_code_commit: Run):
    options = ["--model", "chat:m", "--base-url", "http://127.0.0.1:9/v1", "--max-cost", "1"]
    for command in ([], ["check"]):
        done = run_code_commit(project_folder, *command, *options)
        assert done.returncode == 2
        said = " ".join((done.stderr + done.stdout).split())
        assert '--max-cost needs a price for m: add [prices."m"] with input and output (US dollars per' in said
    assert "PROBLEM  price " in done.stdout
    assert "max cost  " not in done.stdout, "how much is left cannot be told"
    assert not (project_folder / "agent-config" / "logs").exists()


def test_what_an_answer_costs_has_one_verdict(project_folder: Path, run_code_commit: Run):
    config = project_folder / "agent-config" / "config.toml"
    config.write_text('[prices."m"]\ninput = 1000\noutput = 1000\n')
    options = ["--model", "chat:m", "--base-url", "http://127.0.0.1:9/v1", "--max-cost", "0.01"]
    done = run_code_commit(project_folder, "check", *options)
    assert done.returncode == 2
    rows = [row.split()[:3] for row in done.stdout.splitlines() if re.search("  (max cost|price)", row)]
    assert [" ".join(row[: 2 if row[1] == "price" else 3]) for row in rows] == ["PROBLEM max cost", "ok price"]


def test_a_rollup_of_nothing_names_what_is_not_there(project_folder: Path, run_code_commit: Run):
    done = run_code_commit(project_folder, "rollup", "no-such-folder")
    assert done.returncode == 2
    assert "no-such-folder matches no file, or only ignored ones" in done.stderr


def test_a_project_that_nobody_prepared_is_sent_to_init(tmp_path: Path, run_code_commit: Run):
    git(tmp_path, "init", "-q")
    done = run_code_commit(tmp_path, "check")
    assert (done.returncode, "code-commit init writes .gitignore, build.sh and agent-config/.\n" in done.stdout) == (
        2,
        True,
    ), done.stdout


def test_each_of_several_problems_has_a_mark(project_folder: Path, run_code_commit: Run):
    (project_folder / "agent-config/config.toml").write_text("max_repair = 1\nstrict = 7\n")
    done = run_code_commit(project_folder, "check", *replay(project_folder))
    row = next(line for line in done.stdout.splitlines() if ": there is no setting" in line)
    assert f"\n{' ' * row.index('- ')}- agent-config/config.toml: strict must be" in done.stdout, done.stdout
    (project_folder / "agent-config/query.txt").unlink()
    done = run_code_commit(project_folder)
    assert "problems to solve:\n  - agent-config/query.txt is missing" in done.stderr, done.stderr
    assert "\n  - agent-config/config.toml: strict must be " in done.stderr


HERE, THERE = "http://127.0.0.1:1234/v1", "https://llm.example.org/v1"


@pytest.mark.parametrize("urls", [*product(("", HERE, THERE), repeat=2)])
def test_a_dummy_key_is_no_secret_where_each_address_is_on_this_machine(
    project_folder: Path, run_code_commit: Run, urls: tuple[str, str]
):
    """Whichever setting has the address, and whichever command reads it."""
    lines = [f'{name} = "{url}"\n' for name, url in zip(("base_url", "fallback_base_url"), urls, strict=True) if url]
    (project_folder / "agent-config/config.toml").write_text("".join(lines))
    (project_folder / "notes.txt").write_text("Start lm-studio first.\n")
    is_dummy = HERE in urls and THERE not in urls
    for words in ([], ["--fit", "9000"]):
        env = {"CODE_COMMIT_CHAT_API_KEY": "lm-studio"}
        assert run_code_commit(project_folder, "rollup", *words, env=env).returncode == 0
        codebase = (project_folder / "agent-config/codeRollup.txt").read_text()
        assert ("Start lm-studio first." in codebase) == is_dummy, words


def test_each_model_of_a_run_has_the_window_of_its_own_server(project_folder: Path):
    facts = [{"/props": {"default_generation_settings": {"n_ctx": window}}} for window in (100_000, 200_000)]
    with FakeServer(facts=facts[0]) as first, FakeServer(facts=facts[1]) as second:
        options = {"model": "chat:a", "base_url": f"{first.url}/v1"}
        options |= {"fallback_model": "chat:b", "fallback_base_url": f"{second.url}/v1"}
        plan = inspect_run(find_project(project_folder), options, RunInputs()).plan
    assert plan
    assert plan.llm.fallback
    assert [each.settings.context_window for each in (plan.llm, plan.llm.fallback)] == [100_000, 200_000]
