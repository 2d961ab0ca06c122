"""The command prompt."""

import json
from pathlib import Path

import pytest
from command import Run, module, recorded, the_log

RIGHT = "^^^ok.txt\nok\n^^^end\n"


TASK = "Make ok.txt say ok, $HOME `and` nothing else."


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--rollup", "fit", "--prompt-layout", "cached"],
        ["-m", TASK, "--allow", "ok.txt", "--max-repairs", "1"],
        ["--query", "ok.txt", "--rollup", "fresh"],
    ],
)
def test_prompt_prints_what_a_run_with_these_options_sends(options, project_folder: Path, run_code_commit: Run):
    for number in range(40):
        (project_folder / f"part_{number}.py").write_text(module(f"part_{number}", 200))
    (project_folder / "agent-config" / "config.toml").write_text("context_window = 100000\n")
    options = [*options, *recorded(project_folder, RIGHT)]
    rollup = (project_folder / "agent-config" / "codeRollup.txt").read_text()
    printed = run_code_commit(project_folder, "prompt", *options)
    assert printed.returncode == 0, printed.stderr
    assert (project_folder / "agent-config" / "codeRollup.txt").read_text() == rollup
    assert run_code_commit(project_folder, *options).returncode == 0
    assert (the_log(project_folder) / "1-query.txt").read_text() == printed.stdout


def test_the_prompt_as_json(project_folder: Path, run_code_commit: Run):
    plain = run_code_commit(project_folder, "prompt", "-m", TASK).stdout
    for way, env in ((["--json"], {}), ([], {"CODE_COMMIT_JSON": "1"})):
        done = run_code_commit(project_folder, "prompt", "-m", TASK, *way, env=env)
        assert (done.returncode, json.loads(done.stdout)) == (0, {"prompt": plain})


@pytest.mark.parametrize("option", ["-m", "--query"])
def test_the_task_comes_from_standard_input(option, project_folder: Path, run_code_commit: Run):
    assert (
        "\nlower the words\n"
        in run_code_commit(project_folder, "prompt", option, "-", stdin="lower the words\n").stdout
    )
    done = run_code_commit(project_folder, "prompt", option, "-", stdin="")
    assert (done.returncode, "the task on standard input is empty: " in done.stderr) == (2, True)
