"""`command:`: a program as the LLM. What it prints is verified as any other answer, and nothing of it stays."""

import json
import os
import shlex
import sys
from pathlib import Path

import pytest
from asking import PROMPT, Listener
from command import Run, the_log, wait_for

from code_commit.errors import LLMError, NotSetUpError
from code_commit.llm import open_llm
from code_commit.llm.command import CommandLLM
from code_commit.llm.ledger import Ledger
from code_commit.llm.models import choose_model
from code_commit.llm.vendor import LlmConfig
from code_commit.project import Project
from code_commit.runs.record import load_run_record
from code_commit.settings import Settings

RIGHT, WRONG = "^^^ok.txt\nok\n^^^end\n", "^^^ok.txt\nno\n^^^end\n"


def ask(tmp_path: Path, script: str, timeout: float = 60):
    """Ask a shell script once; return the response and the listener."""
    choice = choose_model("command:" + shlex.join(["/bin/sh", "-c", script]))
    config = LlmConfig(choice, None, Settings(llm_timeout=timeout))
    listener = Listener()
    with open_llm(config, Project(tmp_path), Ledger()) as llm:
        return llm.complete(PROMPT, listener), listener


def test_the_prompt_is_its_input_and_the_output_the_answer(tmp_path):
    response, listener = ask(tmp_path, "echo thinking >&2; cat")
    assert (response.text, response.incomplete, response.settlement.cost_usd) == (PROMPT.text, None, None)
    assert [step for step in listener.steps if step != "progressed"] == ["requested", "replied"]


def test_nothing_printed_is_an_empty_answer(tmp_path):
    assert ask(tmp_path, "exit 0")[0].incomplete == "empty"


FAILURES = {
    "it dies": ("echo half; echo 'not logged in' >&2; exit 7", "sh ended with exit code 7:\nnot logged in", "refused"),
    "it is killed": ("kill -9 $$", "was ended by SIGKILL", "refused"),
    "it hangs": ("sleep 300", r"has not ended in time \(1.0 s, --llm-timeout\)", "timeout"),
    "a child of it hangs, and so does it": ("sleep 300 & wait", "has not ended in time", "timeout"),
}


@pytest.mark.parametrize(("script", "told", "kind"), FAILURES.values(), ids=FAILURES)
def test_a_program_that_fails_is_not_run_again(script, told, kind, tmp_path):
    with pytest.raises(LLMError, match=told) as caught:
        ask(tmp_path, f"echo x >>{tmp_path}/runs; {script}", timeout=1 if kind == "timeout" else 60)
    assert (caught.value.kind, (tmp_path / "runs").read_text()) == (kind, "x\n")


def test_one_that_prints_a_hundred_megabytes_is_ended(tmp_path):
    with pytest.raises(LLMError, match="printed too much"):
        ask(tmp_path, "head -c 100000000 /dev/zero")


def test_one_that_forks_and_ends_has_answered(tmp_path):
    response, _ = ask(tmp_path, f"sleep 300 & echo $! >{tmp_path}/pid; echo out")
    assert response.text == "out\n"
    wait_for(lambda: not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists())


def test_it_must_be_named_and_be_there(tmp_path):
    with pytest.raises(
        NotSetUpError, match="needs a program with its arguments: write --model command:PROGRAM ARGUMENTS"
    ):
        choose_model("command:")
    config = LlmConfig(choose_model("command:no-such-program -m x"), None, Settings())
    with pytest.raises(NotSetUpError, match="there is no program no-such-program on the PATH outside the project"):
        CommandLLM(config, Project(tmp_path))


def write_program(tmp_path: Path, *answers: str) -> str:
    """Write a program that gives an answer for each run, with progress before it; return the model's name."""
    folder = tmp_path / "program"
    folder.mkdir(exist_ok=True)
    script = folder / "answer.py"
    script.write_text(
        "import pathlib, sys\n"
        f"here = pathlib.Path({str(folder)!r}); n = len(list(here.glob('*.prompt')))\n"
        "(here / f'{n}.prompt').write_text(sys.stdin.read())\n"
        "print('[=====>    ] 50%\\r[==========] 100%')\n"
        f"print({list(answers)!r}[n])\n"
    )
    return f"command:{sys.executable} {script}"


def test_a_run_with_a_repair_and_its_record(project_folder, tmp_path, run_code_commit: Run):
    model = write_program(tmp_path, WRONG, RIGHT)
    done = run_code_commit(project_folder, "--model", model, "--sandbox", "off")
    assert done.returncode == 0, done.stderr
    record = load_run_record((the_log(project_folder) / "run.json").read_bytes())
    assert (record.model, record.totals.cost_usd, record.totals.unsettled_usd) == (model, None, 0.0)
    first, second = (tmp_path / "program" / f"{n}.prompt" for n in range(2))
    assert "Make ok.txt say ok." in first.read_text()
    assert "[build.sh output]" in second.read_text()


def test_an_agents_command_finds_no_tree(project_folder, tmp_path, run_code_commit: Run):
    model = f"command:/bin/sh -c {shlex.quote('pwd >' + str(tmp_path / 'where') + '; echo evil >ok.txt; git rev-parse; ls -A')}"
    done = run_code_commit(project_folder, "--model", model, "--sandbox", "off", "--on-rejected", "stop")
    assert done.returncode in {3, 4}, done.stderr
    assert (project_folder / "ok.txt").read_text() == "not yet\n"
    folder = Path((tmp_path / "where").read_text().strip())
    assert not folder.exists()
    assert project_folder not in folder.parents


_OTHER = ["--model", "replay:none"]
CHANGED = {
    "an answer": ("printf '^^^ok.txt\\nok\\n^^^end\\n'", ["--model"], 5),
    "words": ("echo no blocks", ["--on-rejected", "stop", "--model"], 5),
    "a failure": ("exit 9", ["--model"], 3),
    "a dry run": ("printf '^^^ok.txt\\nok\\n^^^end\\n'", ["--dry-run", "--model"], 5),
    "a choice": ("printf '^^^files\\nok.txt\\n^^^end\\n'", [*_OTHER, "--rollup", "select", "--select-model"], 5),
    "a fallback": ("printf '^^^ok.txt\\nok\\n^^^end\\n'", [*_OTHER, "--fallback-model"], 5),
}


@pytest.mark.parametrize(("answer", "options", "code"), CHANGED.values(), ids=CHANGED)
def test_a_program_that_changes_what_is_protected_makes_no_build_pass(
    answer, options, code, project_folder, tmp_path, run_code_commit: Run
):
    """An agent's command may go anywhere: it must not weaken build.sh and have that called a passing build."""
    (project_folder / "large.txt").write_text("line\n" * 40_000)
    before = (project_folder / "build.sh").read_bytes()
    script = f"cd {project_folder}; printf '#!/bin/sh\\nexit 0\\n' >build.sh; {answer}"
    model = f"command:/bin/sh -c {shlex.quote(script)}"
    (project_folder / "none").mkdir()
    done = run_code_commit(project_folder, *options, model, "--sandbox", "off")
    said = " ".join(done.stderr.split())
    assert (done.returncode, (project_folder / "build.sh").read_bytes()) == (code, before), said
    assert "the program that is the LLM changed protected files; it was put back: build.sh" in said
    assert (project_folder / "ok.txt").read_text() == "not yet\n"
    assert "--base-url" not in said, "a program has no address"


@pytest.mark.parametrize("options", [[], ["--dry-run"]])
def test_what_else_a_program_changes_is_told(options, project_folder, tmp_path, run_code_commit: Run):
    script = f"echo x >{project_folder}/stray.txt; printf '^^^ok.txt\\nok\\n^^^end\\n'"
    model = f"command:/bin/sh -c {shlex.quote(script)}"
    done = run_code_commit(project_folder, "--model", model, "--sandbox", "off", *options)
    assert done.returncode == 0, done.stderr
    told = "The build, or the program that is the LLM, also left 1 new file: stray.txt (unless you did)"
    assert told in " ".join(done.stderr.split())


def test_an_answer_of_a_program_is_verified_as_any_other(project_folder, tmp_path, run_code_commit: Run):
    model = write_program(tmp_path, "^^^build.sh\nexit 0\n^^^end\n")
    done = run_code_commit(project_folder, "--model", model, "--sandbox", "off", "--on-rejected", "stop")
    assert (done.returncode, "build.sh" in done.stderr) == (4, True)


@pytest.mark.parametrize("where", ["option", "user"])
def test_no_sum_can_be_kept(where, project_folder, tmp_path, run_code_commit: Run):
    options = ["--max-cost", "1"] if where == "option" else []
    if where == "user":
        folder = Path(os.environ["HOME"], ".config", "code-commit")
        folder.mkdir(parents=True)
        (folder / "config.toml").write_text("max_cost = 1\n")
    done = run_code_commit(project_folder, "--model", write_program(tmp_path, RIGHT), *options)
    assert (done.returncode, list((tmp_path / "program").glob("*.prompt"))) == (2, [])
    assert "the cost of a program is unknown" in done.stderr


@pytest.mark.parametrize("setting", ["model", "select_model", "fallback_model"])
def test_no_project_names_a_program(setting, project_folder, tmp_path, run_code_commit: Run):
    (project_folder / "agent-config" / "config.toml").write_text(
        f"{setting} = {json.dumps(write_program(tmp_path, RIGHT))}\n"
    )
    done = run_code_commit(project_folder, "--rollup", "select")
    assert (done.returncode, list((tmp_path / "program").glob("*.prompt"))) == (2, [])
    assert f"agent-config/config.toml: only your own config.toml may set command: as {setting}" in " ".join(
        done.stderr.split()
    )


def test_resume_runs_no_program_that_its_log_alone_names(project_folder, tmp_path, run_code_commit: Run):
    model = write_program(tmp_path, WRONG, RIGHT, RIGHT)
    run_code_commit(project_folder, "--model", model, "--sandbox", "off", "--max-repairs", "0")
    record = the_log(project_folder) / "run.json"
    told = json.loads(record.read_text())
    told |= {"status": "interrupted", "exit_code": 130, "options": told["options"] | {"max_repairs": 3}}
    record.write_text(json.dumps(told))
    done = run_code_commit(project_folder, "resume")
    assert (done.returncode, len(list((tmp_path / "program").glob("*.prompt")))) == (2, 1)
    assert "names the program command:" in " ".join(done.stderr.split())
    done = run_code_commit(project_folder, "resume", env={"CODE_COMMIT_MODEL": model})
    assert (done.returncode, len(list((tmp_path / "program").glob("*.prompt")))) == (0, 2), done.stderr


def test_no_agent_names_a_program_by_mcp(project_folder, tmp_path, monkeypatch):
    from code_commit.commands.mcp_server import _RunArguments

    monkeypatch.chdir(project_folder)
    monkeypatch.setenv("CODE_COMMIT_MODEL", write_program(tmp_path, RIGHT))  # so the project uses programs
    with pytest.raises(ValueError, match="a program runs only where the user's own settings name it"):
        _RunArguments(model="command:sh -c evil").words()
    assert _RunArguments().words() == []


def test_check_looks_for_the_program_and_does_not_run_it(project_folder, tmp_path, run_code_commit: Run):
    model = write_program(tmp_path, RIGHT)
    done = run_code_commit(project_folder, "check", "--model", model)
    assert (done.returncode, list((tmp_path / "program").glob("*.prompt"))) == (0, []), done.stdout
    assert run_code_commit(project_folder, "check", "--model", "command:no-such-program").returncode == 2
