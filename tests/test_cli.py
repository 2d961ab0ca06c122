"""Words of the command line: what is misspelt, and the folder that -C names."""

import argparse
import json
from pathlib import Path

import pytest
from command import Run, recorded, tree

from code_commit.commands import COMMANDS, NoArguments, load_command, make_parser, parse
from code_commit.errors import NotSetUpError

MISSPELT = {
    "a command": (["chek"], "there is no command 'chek'; did you mean 'check'?"),
    "a task without -m": (
        ["fix the bug"],
        "there is no command 'fix the bug'; for a task: code-commit -m 'fix the bug'\n",
    ),
    "a task in several words": (
        ["-C", ".", "Please", "fix", "it", "--dry-run"],
        "there is no command 'Please'; for a task: code-commit -m 'Please fix it'",
    ),
    "a task without quotes": (
        ["-m", "Fix", "the", "slug", "--dry-run"],
        "the task after -m has several words; put it in quotes: code-commit -m 'Fix the slug' ...\n",
    ),
    "a task without quotes that names a command": (["-m", "Fix", "log", "--last"], "code-commit -m 'Fix log' ...\n"),
    "a task of run without -m": (["run", "fix", "it"], "fix it; for a task: code-commit run -m 'fix it'\n"),
    "an empty paragraph": (["-m", "Fix", "-m", " "], "argument -m: one of the texts is empty"),
    "a paragraph of standard input": (["-m", "Fix", "-m", "-"], "- reads the task from standard input: give it alone"),
    "an empty value": (["--base-url", ""], "--base-url: is empty: give it a value, or leave the option out"),
    "help": (["help"], "there is no command 'help'; did you mean 'code-commit --help'?"),
    "help of a command": (["help", "repair"], "no command 'help'; did you mean 'code-commit repair --help'?"),
    "version": (["version"], "there is no command 'version'; did you mean 'code-commit --version'?"),
    "git's option": (["--message", "Fix it"], "unrecognized arguments: --message; did you mean '-m'?"),
    "the last run": (["log", "--last"], "--last; for the latest run, use code-commit log latest\n"),
    "a shell": (["completion", "ksh"], "must be one of bash, zsh, fish; see code-commit completion --help"),
    "an option": (["--modle", "gemini"], "unrecognized arguments: --modle; did you mean '--model'?"),
    "an option of a command": (["log", "--mrkdown"], "unrecognized arguments: --mrkdown; did you mean '--markdown'?"),
    "a word too many": (["init", "extra"], "usage: code-commit init "),
    "the same with advice": (["init", "extra"], "unrecognized arguments: extra; see code-commit init --help\n"),
    "paths without --": (
        ["diff", "latest", "README.md", "a b", "--stat"],
        "unrecognized arguments: README.md a b; put -- before paths: code-commit diff latest --stat -- README.md 'a b'\n",
    ),
    "paths before --": (["diff", "-1", "a", "--", "b"], "unrecognized arguments: a; see code-commit diff --help\n"),
    "an option of a run": (["rollup", "-m", "x"], "unrecognized arguments: -m, an option of `run`, not of `rollup`"),
    "a setting of a fleet's tasks": (
        ["fleet", "--base-url", "x"],
        "arguments: --base-url, an option of `run`: here use --setting base_url=VALUE",
    ),
    "a setting of config.toml alone": (
        ["run", "--keep-runs", "3"],
        "unrecognized arguments: --keep-runs; keep_runs can be set only in config.toml\n",
    ),
    "the same in a fleet": (["fleet", "--stream=no"], "arguments: --stream=no; here use --setting stream=VALUE\n"),
    "a value for a flag": (
        ["--build-first=yes"],
        "--build-first takes no value: write --build-first alone, or leave it out\n",
    ),
    "a part of a number": (["--max-repairs", "1.5"], "--max-repairs: must be a whole number; see code-commit --help"),
    "an option that another resembles": (["init", "--quiet"], "arguments: --quiet, an option of `run`, not of `init`"),
    "a value": (["--sandbox", "strct"], "must be one of auto, off, guard, strict; did you mean 'strict'?"),
    "a provider": (["--model", "opnai:gpt-6.2-sol"], "did you mean 'openai'?"),
    "a model": (["--model", "cluade-opus-5-5"], "did you mean 'claude-opus-5-5'?"),
    "a server": (["--model", "ollama:llama3"], "use --model chat:llama3 --base-url http://127.0.0.1:11434/v1"),
    "a provider before a slash": (["--model", "openai/gpt-5.5"], "replay:); did you mean 'openai:gpt-5.5'?\n"),
    "a server before a slash": (["--model", "ollama/q:8b"], "use --model chat:q:8b --base-url http://127.0.0.1:11434"),
    "a folder": (["-C", "nowhere"], "cannot go to 'nowhere': No such file or directory; name an existing folder"),
}


@pytest.mark.parametrize(("arguments", "told"), MISSPELT.values(), ids=MISSPELT)
def test_what_is_misspelt_gets_the_nearest_known_word(
    arguments: list[str], told: str, project_folder: Path, run_code_commit: Run
):
    done = run_code_commit(project_folder, *arguments)
    assert (done.returncode, told in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("command", ["run", "repair", "check"])
def test_a_usage_of_many_lines_does_not_hide_the_message(command, project_folder: Path, run_code_commit: Run):
    done = run_code_commit(project_folder, command, "--bogus")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr


ALL_PARSERS = make_parser(whole=True)  # with the main job's options, and the arguments of every command
OF_COMMANDS = next(action.choices for action in ALL_PARSERS._actions if isinstance(action.choices, dict))


def of_the_main_job() -> list[argparse.Action]:
    """Return the options that leave something to the command: not -C, --help and --version."""
    alone = {"-C", "-h", "--version"}
    return [action for action in ALL_PARSERS._actions if action.option_strings and not alone & {*action.option_strings}]


def spellings(action: argparse.Action) -> list[list[str]]:
    """Return the ways to give an option: a value may be the name of a command, or stand in the same word."""
    name = action.option_strings[0]
    if action.nargs == 0:
        return [[name]]
    value = next(iter(action.choices or ()), "1" if action.type else "undo")
    return [[name, value], [f"{name}={value}" if name.startswith("--") else f"{name}{value}"]]


def refusal(words: list[str]) -> str:
    with pytest.raises(NotSetUpError) as refused:
        parse(words)
    return str(refused.value)


@pytest.mark.parametrize("command", COMMANDS)
def test_an_option_of_the_main_job_before_a_command_is_refused(command: str):
    for action in of_the_main_job():
        for option in spellings(action):
            for words in ([*option, command], [*option, command, "last"]):
                message, name = refusal(words), action.option_strings[0]
                if name in OF_COMMANDS[command]._option_string_actions:
                    said = f"put {name} after {command}: code-commit {command} "
                else:
                    said = f"{name} is an option of `run`, not of `{command}`"
                assert said in message or "the task after -m has several words" in message, words


@pytest.mark.parametrize("command", COMMANDS)
def test_an_option_that_a_command_lacks_is_refused_after_it_too(command: str):
    for action in of_the_main_job():
        if not {*action.option_strings} & OF_COMMANDS[command]._option_string_actions.keys():
            for option in spellings(action):
                needed = {"apply": ["x"], "completion": ["bash"]}.get(command, [])
                assert "unrecognized arguments: " in refusal([command, *needed, *option])


BEFORE = {
    "what the command lacks": (["--dry-run", "undo"], "--dry-run is an option of `run`, not of `undo`"),
    "two of them": (["--model", "x", "--dry-run", "resume"], "--model and --dry-run are options of `run`, not of"),
    "what the command has": (["--json", "undo", "-1"], "put --json after undo: code-commit undo --json -1\n"),
    "with a value": (["--model", "x y", "rollup"], "put --model after rollup: code-commit rollup --model 'x y'\n"),
    "the main job's own": (["-m", "a b", "run"], "put -m after run: code-commit run -m 'a b'\n"),
    "a value that is the name of a command": (
        ["--allow", "undo", "log"],
        "--allow is an option of `run`, not of `log`",
    ),
    "what only the command has": (["--force", "undo"], "unrecognized arguments: --force; put it after undo\n"),
    "the beginning of a name": (["--dry", "undo"], "unrecognized arguments: --dry; did you mean '--dry-run'?"),
    "the end of options": (["--", "undo"], "-- stands before the command; leave it out\n"),
    "after another folder": (["-C", ".", "--dry-run", "undo"], "--dry-run is an option of `run`, not of `undo`"),
    "both": (["--dry-run", "--", "undo"], "-- stands before the command; leave it out\n"),
    "of a fleet": (
        ["--allow", "x", "fleet", "--schema"],
        "--allow is an option of `run`, not of `fleet`; there use --setting allow=VALUE\n",
    ),
}


@pytest.mark.parametrize(("words", "told"), BEFORE.values(), ids=BEFORE)
def test_nothing_is_done_where_an_option_stands_before_the_command(
    words: list[str], told: str, project_folder: Path, run_code_commit: Run
):
    answer = recorded(project_folder, "^^^ok.txt\nok\n^^^end\n")
    assert run_code_commit(project_folder, *answer, "--sandbox", "off").returncode == 0
    before, runs = tree(project_folder), list(project_folder.glob("agent-config/logs/*"))
    done = run_code_commit(project_folder, *words)
    assert (done.returncode, told in done.stderr) == (2, True), done.stderr
    assert (tree(project_folder), list(project_folder.glob("agent-config/logs/*"))) == (before, runs)


def test_the_value_of_an_option_is_no_command(project_folder: Path, run_code_commit: Run):
    done = run_code_commit(
        project_folder, *recorded(project_folder, "^^^ok.txt\nok\n^^^end\n"), "-m", "undo", "--dry-run"
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_every_argument_of_a_command_has_its_place_and_its_type(command: str):
    kind = getattr(load_command(command), "Arguments", NoArguments)
    needed = {"apply": ["x"], "completion": ["bash"]}.get(command, [])
    for action in OF_COMMANDS[command]._actions:
        if action.dest in ("help", "C") or not action.option_strings:
            continue
        given = parse([command, *needed, *spellings(action)[0]]).arguments
        assert isinstance(given, kind)
        own = action.dest in kind.__annotations__
        value = getattr(given, action.dest) if own else given.options[action.dest]
        assert value not in (None, False, "", ()), action.option_strings
        assert not isinstance(value, list), "arguments do not change"


def test_arguments_cannot_be_changed():
    for words in ([], ["undo"], ["log"], ["apply", "x"], ["fleet", "x"]):
        arguments = parse(words).arguments
        with pytest.raises(AttributeError):
            setattr(arguments, next(iter(type(arguments).__annotations__)), "x")


@pytest.mark.parametrize("words", [["-C", "x", "log"], ["log", "-Cx"]])
def test_a_folder_that_nobody_has_gone_to_is_not_ignored(words: list[str]):
    assert refusal(words) == "-C x is for the whole process: go to the folder first"


def test_a_call_without_a_command_is_the_main_job():
    assert parse(["-m", "undo", "--dry-run"]) == parse(["run", "-m", "undo", "--dry-run"])


@pytest.mark.parametrize("command", [[], ["init"], ["rollup"], ["check"], ["log"], ["undo"], ["diff"], ["-m", "x"]])
def test_in_a_subfolder_the_projects_folder_is_named(command: list[str], project_folder: Path, run_code_commit: Run):
    folder = project_folder / "src" / "deep"
    folder.mkdir(parents=True)
    done = run_code_commit(folder, *command)
    assert (done.returncode, f"inside the project {project_folder}: cd there, or name it with -C" in done.stderr) == (
        2,
        True,
    )
    assert "-C .." not in done.stderr, "which would be relative to the folder of an own -C"
    assert not any(folder.iterdir())


@pytest.mark.parametrize("before", [True, False])
def test_another_folder_is_named_before_or_after_the_command(
    *, before: bool, project_folder: Path, run_code_commit: Run, tmp_path: Path
):
    (project_folder / "answer.txt").write_text("^^^ok.txt\nok\n^^^end\n")
    command = ["apply", "answer.txt", "--sandbox", "off"]
    folders = ["-C", "nowhere/..", "-C", "project"]
    (tmp_path / "nowhere").mkdir()
    done = run_code_commit(tmp_path, *(folders + command if before else command + folders))
    assert done.returncode == 0, done.stderr
    assert (project_folder / "ok.txt").read_text() == "ok\n"


@pytest.mark.parametrize(
    "words", [["-C", "DIR", "log"], ["log", "-C", "DIR"], ["-CDIR", "log"], ["log", "-CDIR"], ["-C=DIR", "log"]]
)
def test_no_module_of_the_folder_that_is_gone_to_is_imported(
    words, project_folder: Path, run_code_commit: Run, tmp_path: Path
):
    (project_folder / "argparse.py").write_text("raise SystemExit(99)\n")
    (tmp_path / "elsewhere").mkdir()
    words = [word.replace("DIR", str(project_folder)) for word in words]
    done = run_code_commit(tmp_path / "elsewhere", *words, env={"PYTHONPATH": str(project_folder)})
    assert (done.returncode, done.stdout) == (0, "No run yet.\n"), done.stderr


NO_VALUE = {
    "no word": (["-m"], "-m needs a value: -m TEXT; see code-commit --help"),
    "an option": (["repair", "-m", "--json"], "-m needs a value: -m TEXT; see code-commit repair --help"),
    "a choice": (["--sandbox"], "--sandbox needs a value: --sandbox auto|off|guard|strict; see code-commit --help"),
    "an argument": (["completion"], "the following arguments are required: SHELL; see code-commit completion --help"),
}


@pytest.mark.parametrize(("words", "told"), NO_VALUE.values(), ids=NO_VALUE)
def test_an_option_without_its_value_tells_how_it_is_written(words: list[str], told: str):
    assert refusal(words) == told


@pytest.mark.parametrize("words", [["-C", "nowhere"], ["-Cnowhere"], ["-C=nowhere"], ["-C"]])
def test_a_folder_that_cannot_be_gone_to_is_told(words, tmp_path: Path, run_code_commit: Run):
    done = run_code_commit(tmp_path, "log", *words)
    told = "cannot go to 'nowhere': No such file" if len("".join(words)) > 2 else "-C needs a value: -C DIR"
    assert (done.returncode, told in done.stderr) == (2, True), done.stderr


def test_no_folder_is_gone_to_where_options_have_ended(project_folder: Path, run_code_commit: Run):
    (project_folder / "-Csub").mkdir()
    (project_folder / "-Csub/new.txt").write_text("new\n")
    done = run_code_commit(project_folder, "rollup", "--json", "--", "-Csub")
    assert {file["path"] for file in json.loads(done.stdout)["largest"]} == {"build.sh", "-Csub/new.txt"}, done.stderr
