"""What the preflight must not take for fine: a tree that git cannot judge, a build.sh that cannot start, a closed folder."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from command import CODE_COMMIT, Run, git


def replay(root: Path, *answers: str) -> list[str]:
    folder = root / "agent-config" / "replay"
    folder.mkdir()
    for number, answer in enumerate(answers or ("^^^ok.txt\nok\n^^^end\n",), 1):
        (folder / f"{number}-response.txt").write_text(answer, encoding="utf-8")
    return ["--model", "replay:agent-config/replay", "--sandbox", "off"]


def missing_tree(root: Path) -> None:
    """After it `git status` ends with 128 and tells nothing."""
    name = git(root, "rev-parse", "HEAD^{tree}").strip()
    (root / ".git" / "objects" / name[:2] / name[2:]).unlink()


def no_repository(root: Path) -> None:
    shutil.rmtree(root / ".git")


@pytest.mark.parametrize(
    ("build", "told"), [(missing_tree, "git status failed"), (no_repository, "this is no git repository")]
)
def test_a_tree_that_git_cannot_judge_is_not_clean(
    project_folder: Path, run_code_commit: Run, build: Callable[[Path], None], told: str
):
    build(project_folder)
    options = replay(project_folder)
    done = run_code_commit(project_folder, *options, "--require-clean")
    assert (done.returncode, told in done.stderr, "--require-clean" in done.stderr) == (2, True, True), done.stderr
    assert (project_folder / "ok.txt").read_text() == "not yet\n"
    done = run_code_commit(project_folder, *options)
    assert (done.returncode, told in done.stderr) == (0, True), done.stderr


@pytest.mark.parametrize("command", [[], ["check"], ["log"], ["undo"], ["rollup"], ["apply", "-"], ["demo"], ["init"]])
def test_without_git_nothing_begins(command: list[str], project_folder: Path, run_code_commit: Run, tmp_path: Path):
    done = run_code_commit(project_folder, *command, env={"PATH": str(tmp_path)})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("code-commit: git is not installed")
    assert done.stderr.count("\n") == 1


def test_a_clean_tree_may_be_required(project_folder: Path, run_code_commit: Run):
    done = run_code_commit(project_folder, *replay(project_folder), "--require-clean")
    assert done.returncode == 0, done.stderr


def link_instead(script: Path) -> None:
    script.rename(script.with_name("other.sh"))
    script.symlink_to("other.sh")


UNSTARTABLE: dict[str, tuple[Callable[[Path], object], str]] = {
    "Windows line ends": (lambda script: script.write_bytes(b"#!/bin/sh\r\nexit 0\r\n"), "Windows line ends"),
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


@pytest.mark.parametrize("path", ["\u65e5\u672c.txt", "\u00e9/x.txt"])
def test_a_path_that_the_locale_cannot_write_is_a_violation(project_folder: Path, run_code_commit: Run, path: str):
    options = replay(project_folder, f"^^^{path}\nx\n^^^end\n", "^^^ok.txt\nok\n^^^end\n")
    locale = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = run_code_commit(project_folder, *options, env=locale)
    log = "".join(file.read_text("utf-8") for file in project_folder.glob("agent-config/logs/*/*.json"))
    assert done.returncode == 0, done.stderr
    assert "cannot be written in this locale" in log
    assert not (project_folder / path).exists()


def test_the_same_path_is_written_in_a_utf8_locale(project_folder: Path, run_code_commit: Run):
    response = "^^^\u65e5\u672c.txt\nx\n^^^end\n^^^ok.txt\nok\n^^^end\n"
    done = run_code_commit(project_folder, *replay(project_folder, response), env={"PYTHONUTF8": "1"})
    assert done.returncode == 0, done.stderr
    assert (project_folder / "\u65e5\u672c.txt").read_text() == "x\n"


MISSPELT = {
    "a command": (["chek"], "there is no command 'chek'; did you mean 'check'?"),
    "a task without -m": (
        ["fix the bug"],
        "there is no command 'fix the bug'; for a task: code-commit -m 'fix the bug'",
    ),
    "a task in several words": (
        ["-C", ".", "Please", "fix", "it", "--dry-run"],
        "there is no command 'Please'; for a task: code-commit -m 'Please fix it'",
    ),
    "help": (["help"], "there is no command 'help'; code-commit --help tells more"),
    "a shell": (["completion", "ksh"], "must be one of bash, zsh, fish; code-commit completion --help"),
    "an option": (["--modle", "gemini"], "unrecognized arguments: --modle; did you mean '--model'?"),
    "an option of a command": (["log", "--mrkdown"], "unrecognized arguments: --mrkdown; did you mean '--markdown'?"),
    "an option of a run": (["rollup", "-m", "x"], "unrecognized arguments: -m; code-commit rollup --help tells more"),
    "a value": (["--sandbox", "strct"], "must be one of auto, off, guard, strict; did you mean 'strict'?"),
    "a provider": (["--model", "opnai:gpt-6.2-sol"], "did you mean 'openai'?"),
    "a model": (["--model", "cluade-opus-5-5"], "did you mean 'claude-opus-5-5'?"),
    "a server": (["--model", "ollama:llama3"], "use --model chat:llama3 --base-url http://127.0.0.1:11434/v1"),
    "a folder": (["-C", "nowhere"], "cannot go to 'nowhere': No such file or directory"),
}


@pytest.mark.parametrize(("arguments", "told"), MISSPELT.values(), ids=MISSPELT)
def test_what_is_misspelt_gets_the_nearest_known_word(
    arguments: list[str], told: str, project_folder: Path, run_code_commit: Run
):
    done = run_code_commit(project_folder, *arguments)
    assert (done.returncode, told in done.stderr) == (2, True), done.stderr


def test_a_model_whose_name_is_nearly_a_known_one_is_told(project_folder: Path, run_code_commit: Run):
    for name, is_told in {"gpt-6.2-soll": True, "gpt-6.2-sol": False, "gpt-9-whatever": False}.items():
        checked = run_code_commit(
            project_folder, "check", "--model", f"openai:{name}", env={"OPENAI_API_KEY": "k" * 20}
        )
        assert ("nor its price; did you mean 'gpt-6.2-sol'?" in checked.stdout) == is_told, checked.stdout
        is_unknown = name != "gpt-6.2-sol"
        assert (f"it is not known how much openai:{name} reads" in checked.stdout) == is_unknown, checked.stdout


def test_a_task_may_begin_with_what_looks_like_an_option(project_folder: Path, run_code_commit: Run):
    done = run_code_commit(project_folder, "-m", "--sum is broken, mend it", *replay(project_folder))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", [[], ["init"], ["rollup"], ["check"], ["log"], ["undo"], ["diff"], ["-m", "x"]])
def test_in_a_subfolder_the_projects_folder_is_named(command: list[str], project_folder: Path, run_code_commit: Run):
    folder = project_folder / "src" / "deep"
    folder.mkdir(parents=True)
    done = run_code_commit(folder, *command)
    assert (done.returncode, f"in {project_folder}: go there, or name it with -C" in done.stderr) == (2, True)
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


@pytest.mark.parametrize("words", [["-C", "nowhere"], ["-Cnowhere"], ["-C=nowhere"], ["-C"]])
def test_a_folder_that_cannot_be_gone_to_is_told(words, tmp_path: Path, run_code_commit: Run):
    done = run_code_commit(tmp_path, "log", *words)
    told = "cannot go to 'nowhere': No such file" if len("".join(words)) > 2 else "argument -C: expected one argument"
    assert (done.returncode, told in done.stderr) == (2, True), done.stderr


def test_no_folder_is_gone_to_where_options_have_ended(project_folder: Path, run_code_commit: Run):
    (project_folder / "-Csub").mkdir()
    (project_folder / "-Csub/new.txt").write_text("new\n")
    done = run_code_commit(project_folder, "rollup", "--json", "--", "-Csub")
    assert {file["path"] for file in json.loads(done.stdout)["largest"]} == {"build.sh", "-Csub/new.txt"}, done.stderr


@pytest.mark.parametrize("as_json", [False, True])
def test_check_can_build_once(*, as_json: bool, project_folder: Path, run_code_commit: Run):
    options = [*replay(project_folder), *(["--json"] if as_json else [])]
    key = "sk-" + "k9" * 20
    (project_folder / "build.sh").write_text(f"#!/bin/sh\nseq 20\necho {key}\ngrep -qx ok ok.txt\n")
    done = run_code_commit(project_folder, "check", "--build", *options, env={"OPENAI_API_KEY": key})
    assert (done.returncode, "fails: exit code 1 after" in done.stdout) == (1, True), done.stdout
    assert "| 10" in done.stdout
    assert "| 9" not in done.stdout
    assert key not in done.stdout
    (project_folder / "ok.txt").write_text("ok\n")
    done = run_code_commit(project_folder, "check", "--build", *options)
    assert (done.returncode, "build           exit code 0 after" in done.stdout) == (0, not as_json), done.stdout
    (project_folder / "build.sh").write_text("#!/bin/sh\necho >>.gitignore\n")
    assert run_code_commit(project_folder, "check", "--build", *options).returncode == 5
    (project_folder / "build.sh").write_text("#!/bin/sh\nexit 75\n")
    done = run_code_commit(project_folder, "check", "--build", *options)
    said = "Ready, but build.sh reports an infrastructure failure"
    assert (done.returncode, said in done.stdout) == (1, not as_json), done.stdout
    (project_folder / "agent-config/query.txt").unlink()
    done = run_code_commit(project_folder, "check", "--build", *options)
    assert (done.returncode, "exit code" in done.stdout) == (2, False), done.stdout
    assert "build: not run, the problems first" in done.stdout


def test_check_names_what_a_run_would_stumble_over(project_folder: Path, run_code_commit: Run):
    options = replay(project_folder)
    (project_folder / "build.sh").chmod(0o644)
    (project_folder / "agent-config/openai-key.txt").write_text("short")
    (project_folder / "agent-config/openai-key.txt").chmod(0o600)
    done = run_code_commit(project_folder, "check", *options)
    assert done.returncode == 0, done.stdout
    assert "note" in done.stdout
    assert "build.sh has no run bit" in done.stdout
    assert "ok       sandbox         none\n" in done.stdout
    assert "ok       keys            none; agent-config/openai-key.txt holds no API key" in done.stdout
    done = run_code_commit(project_folder, "check", "--sandbox", "off", env={"ANTHROPIC_API_KEY": "k" * 20})
    assert (done.returncode, done.stdout.count("PROBLEM")) == (2, 1), done.stdout
    assert "PROBLEM  model           agent-config/openai-key.txt holds no API key" in done.stdout
    done = run_code_commit(project_folder, "check", "--sandbox", "off", "--model", "openai")
    assert (done.returncode, done.stdout.count("PROBLEM")) == (2, 1), done.stdout
    assert "PROBLEM  key             agent-config/openai-key.txt holds no API key" in done.stdout


def test_check_quiet_prints_problems_alone(project_folder: Path, run_code_commit: Run):
    options = [*replay(project_folder), "--sandbox", "off"]
    assert run_code_commit(project_folder, "check", "--quiet", *options).stdout == ""
    (project_folder / "build.sh").chmod(0o644)
    done = run_code_commit(project_folder, "check", *options, env={"CODE_COMMIT_QUIET": "1"})
    assert (done.returncode, done.stdout) == (0, "")
    (project_folder / "agent-config/query.txt").unlink()
    done = run_code_commit(project_folder, "check", "--quiet", *options)
    verdicts = [line.split()[0] for line in done.stdout.splitlines()]
    assert (done.returncode, verdicts) == (2, ["PROBLEM", "1"]), done.stdout


def test_check_calls_no_keys_well_where_the_lack_of_one_is_a_problem(project_folder: Path, run_code_commit: Run):
    for model in ([], ["--model", "openai"]):
        done = run_code_commit(project_folder, "check", *model)
        assert (done.returncode, "ok       keys" in done.stdout) == (2, False), done.stdout
    assert "ok       keys            none\n" in run_code_commit(project_folder, "check", *replay(project_folder)).stdout


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
        assert '--max-cost needs a price for m: write [prices."m"] into config.toml' in done.stderr + done.stdout
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
    assert [" ".join(row[: 2 if row[1] == "price" else 3]) for row in rows] == ["ok price", "PROBLEM max cost"]


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
