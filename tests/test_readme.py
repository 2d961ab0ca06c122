"""What the README and the documents say can be done is done here, word for word."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from command import git

from code_commit.commands import COMMANDS
from code_commit.commands.build_scripts import build_script_for
from code_commit.llm.keys import KEY_VARIABLES, SHORTEST_KEY_HERE
from code_commit.llm.models import VENDORS
from code_commit.paths.protected import PROTECTED, PROTECTED_ANYWHERE
from code_commit.runs.record import SCHEMA_VERSION, run_record_schema
from code_commit.settings import ATTEMPT_VARIABLE, OPTIONS, RUN_VARIABLE, SETTINGS, Settings

ROOT = Path(__file__).parents[1]
NAMES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")
DOCUMENTS = [*(ROOT / name for name in NAMES), *sorted((ROOT / "docs").glob("*.md"))]


def section(file: str, title: str) -> str:
    return (ROOT / file).read_text("utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]


def shell_blocks(text: str) -> list[list[str]]:
    """Return the commands of each block, without their comments."""
    blocks = re.findall(r"^( *)(?:\d\. )?```sh\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE)
    return [[line.split(" #")[0].strip() for line in block.splitlines() if line.strip()] for _, block in blocks]


@pytest.fixture
def root(project_folder: Path, tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "code-commit").write_text(f'#!/bin/sh\nexec {sys.executable} -m code_commit "$@"\n')
    (tmp_path / "bin" / "code-commit").chmod(0o755)
    return project_folder


def shell(root: Path, line: str) -> subprocess.CompletedProcess[str]:
    path = f"{root.parent / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "BROWSER": "true"}
    command = ["bash", "-c", line]
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=180, check=False)


def answer(prompt: str) -> str:
    """Answer like an LLM that has read the prompt: with the file that its codebase shows, as its query wants it."""
    path = re.findall(r"^--- (\S+) ---$", prompt.rpartition("[codebase]\n")[2], re.MULTILINE)[0]
    content = re.findall(r"Make \S+ say (\w+)\.", prompt.rpartition("[query]\n")[2])[0]
    return f"Here it is.\n\n^^^{path}\n{content}\n^^^end\n"


@pytest.mark.slow
@pytest.mark.parametrize(("spoil", "code"), [(False, 0), (True, 1)])
def test_the_same_job_by_hand(spoil, code, root: Path):
    ((prompt, apply, undo),) = shell_blocks(section("docs/response-format.md", "The same job by hand"))
    done = shell(root, prompt)
    assert (done.returncode, done.stdout) == (0, "")
    text = answer((root / "agent-config/prompt.txt").read_text())
    (root / "agent-config/answer.txt").write_text(text.replace("\nok\n", "\nno\n") if spoil else text)
    done = shell(root, apply)
    assert done.returncode == code, done.stderr
    assert (root / "ok.txt").read_text() == ("no\n" if spoil else "ok\n")
    assert git(root, "status", "--porcelain") == " M ok.txt\n"
    assert shell(root, undo).returncode == 0
    assert git(root, "status", "--porcelain") == ""


@pytest.mark.slow
def test_a_rejected_answer_by_hand_changes_nothing(root: Path):
    _, apply, undo = shell_blocks(section("docs/response-format.md", "The same job by hand"))[0]
    (root / "agent-config/answer.txt").write_text("^^^ok.txt\nok\n^^^end\n^^^build.sh\n^^^delete\n")
    assert shell(root, apply).returncode == 4
    assert git(root, "status", "--porcelain") == ""
    assert shell(root, undo).returncode == 2


@pytest.mark.slow
def test_the_first_real_run(root: Path):
    init, run, review = shell_blocks(section("README.md", "The first real run"))
    (root / "build.sh").unlink()
    (root / ".gitignore").unlink()
    (root / "Makefile").write_text("test:\n\tgrep -q . ok.txt\n")
    assert shell(root, init[0]).returncode == 0
    git(root, "add", "-A")
    git(root, "commit", "-qm", "init")
    (root / "agent-config/recorded").mkdir()
    (root / "agent-config/recorded/1-response.txt").write_text("^^^ok.txt\nok\n^^^end\n")
    (root / "agent-config/config.toml").write_text('model = "replay:agent-config/recorded"\n')
    for line in run:
        done = shell(root, line)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
    assert (root / "ok.txt").read_text() == "ok\n"
    for line in review:
        done = shell(root, line)
        assert done.returncode == 0, (line, done.stderr)
    assert (root / "ok.txt").read_text() == "not yet\n"


def test_the_table_of_keys_names_the_file_the_variable_and_the_default_model_of_each_provider():
    rows = re.findall(r"^   \| `(.+)` \| `(.+)` \| (.+?) \|$", section("README.md", "The first real run"), re.MULTILINE)
    for (file, variable, model), vendor in zip(rows, (VENDORS[name] for name in KEY_VARIABLES), strict=True):
        assert (file, variable) == (f"{vendor.name}-key.txt", vendor.key_variable)
        assert model.startswith(f"`{vendor.name}:{vendor.default_model}`" if vendor.default_model else "none: ")


def test_each_provider_is_named_wherever_a_user_looks_for_one():
    files = ("agent-config.example/config.toml", "docs/settings.md", "code_commit/commands/init.py")
    config, settings, init = ((ROOT / name).read_text("utf-8") for name in files)
    tried = ", ".join(vendor.name for vendor in VENDORS.values() if vendor.default_model)
    assert f"PROVIDER:NAME ({', '.join(VENDORS)})" in SETTINGS["model"].help
    assert all(f"the first of {tried} that has a key" in text for text in (config, settings))
    assert all(f'"{name}:' in config for name in VENDORS)
    for name, variable in KEY_VARIABLES.items():
        assert re.search(rf"^\| `{name}:`.* `{name}-key.txt`.* `{variable}` \|$", settings, re.MULTILINE)
        assert f"{name}-key.txt" in init


def test_the_lines_for_pre_commit_are_those_that_init_writes(tmp_path: Path):
    (tmp_path / ".pre-commit-config.yaml").touch()
    script = build_script_for(tmp_path)
    assert script is not None
    for line in shell_blocks(section("docs/supervisor-and-ci.md", "pre-commit"))[0]:
        assert line in script.text


def test_the_tables_name_every_command_and_every_option():
    commands = section("README.md", "Commands").partition("| command |")[2]
    assert set(re.findall(r"^\| .*`code-commit (\w+)", commands, re.MULTILINE)) == set(COMMANDS)
    rows = re.findall(r"^\| (`--.*?) \|", (ROOT / "docs/settings.md").read_text("utf-8"), re.MULTILINE)
    assert set(re.findall(r"`--([a-z-]+)", "\n".join(rows))) == {name.replace("_", "-") for name in OPTIONS}


KINDS = {bool: "true or false", int: "whole number", str: "string", tuple: "list of strings", Mapping: "table"}


def told(default: object) -> str:
    """Return a default as the tables write it: `75` for a list of one, `false` or a text as config.toml has them."""
    if default in (None, "", (), {}):
        return "none"
    if isinstance(default, tuple):
        return ", ".join(map(str, default))
    return (
        f"`{json.dumps(default)}`"
        if isinstance(default, str)
        else f"{default:g}"
        if type(default) is float
        else json.dumps(default)
    )


def test_the_tables_of_settings_tell_type_and_default():
    """Of config.toml's own settings both; of an option the default where the code has one."""
    of_file = section("docs/settings.md", "Settings of config.toml alone")
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|", of_file, re.MULTILINE)
    own = {name: setting for name, setting in SETTINGS.items() if name not in OPTIONS}
    kinds = {name: " or ".join(f"`{one}`" for one in each.choices) or KINDS[each.kind] for name, each in own.items()}
    assert {name: (kind, default) for name, kind, default in rows} == {
        name: (kind, told(getattr(Settings(), name))) for name, kind in kinds.items()
    }
    of_options = section("docs/settings.md", "Options").replace(r"\|", "/")
    for name, default in re.findall(r"^\| `--([a-z-]+)[^|]*` \| (.*?) \|", of_options, re.MULTILINE):
        value = getattr(Settings(), name.replace("-", "_"))
        words = ("on" if value else "off") if isinstance(value, bool) else told(value).strip('`"')
        assert default == words or (not value and not isinstance(value, bool)), name


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_files_and_headings(document: Path):
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", document.read_text("utf-8")):
        file = document.parent / target if target else document
        assert file.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", file.read_text("utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def test_the_specification_leads_to_code_and_tests():
    table = (ROOT / "docs/specification-and-code.md").read_text("utf-8").partition("| --- |")[2]
    rows = re.findall(r"^\|[^|]*\|([^|]*)\|([^|]*)\|$", table, re.MULTILINE)
    rows = [row for row in rows if row not in ((" code ", " test "), (" --- ", " --- "))]
    assert len(rows) > 10
    for code, tests in rows:
        modules = re.findall(r"`([^`]+)`", code)
        assert modules
        for name in modules:
            assert (ROOT / "code_commit" / name).exists() or (ROOT / name).exists(), name
        named = re.findall(r"`([^`:]+)(?:::(\w+))?`", tests)
        assert named
        for name, function in named:
            path = ROOT / "tests" / name
            assert path.exists(), name
            assert not function or f"\ndef {function}(" in path.read_text("utf-8"), function


def test_the_readme_leads_to_every_document():
    linked = re.findall(r"\]\((docs/[^)#]+\.md)", (ROOT / "README.md").read_text("utf-8"))
    assert set(linked) == {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")}


def test_the_readme_is_a_page_and_a_half():
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 150


def test_the_first_command_is_the_demo():
    (demo,), (test,) = shell_blocks(section("README.md", "Try it"))
    assert demo.endswith(".venv/bin/code-commit demo")
    assert "-m pytest" in test


def test_the_record_in_short_has_the_fields_of_the_schema():
    schema = run_record_schema()
    assert schema["properties"]["schema_version"]["default"] == SCHEMA_VERSION
    (example,) = re.findall(r"```json\n(.*?)```", section("docs/log.md", "run.json"), re.DOTALL)
    shown = json.loads(example)
    assert shown["schema_version"] == SCHEMA_VERSION
    parts = {
        "RunRecord": shown,
        "Attempt": shown["attempts"][0],
        "AppliedChange": shown["attempts"][0]["changes"][0],
        "BuildResult": shown["attempts"][0]["build"],
        "Usage": shown["attempts"][0]["usage"],
        "Totals": shown["totals"],
    }
    for name, part in parts.items():
        fields = schema["properties"] if name == "RunRecord" else schema["$defs"][name]["properties"]
        assert part.keys() <= fields.keys(), name


def test_the_tests_that_stand_beside_the_rules_of_the_specification_are_there():
    table = (ROOT / "docs/specification-and-code.md").read_text()
    for name in re.findall(r"`((?:scenarios/|(?:\w+/)*test_)[^`]+)`", table):
        path, _, function = name.partition("::")
        assert (ROOT / "tests" / path).exists(), name
        assert not function or f"\ndef {function}(" in (ROOT / "tests" / path).read_text(), name


def test_the_rules_of_the_design_stand_in_tables_by_subject():
    part = (ROOT / "docs/specification-and-code.md").read_text("utf-8").partition("\n## The rules of the design\n")[2]
    subjects = dict(re.findall(r"^### (.*)\n((?:(?!###).*\n)*)", part, re.MULTILINE))
    assert {"Exit codes", "Money", "Locks", "Reasons for a rejection", "Secrets", "Apply and undo"} <= set(subjects)
    assert all(rows.count("\n| ") > 4 for rows in subjects.values())
    exit_codes = re.findall(r"^\| ([\d, ]+):", subjects["Exit codes"], re.MULTILINE)
    in_readme = re.findall(r"^\| ([\d, ]+) \|", section("README.md", "Exit codes"), re.MULTILINE)
    assert exit_codes == in_readme


def test_each_deviation_from_the_specification_has_a_reason_and_a_test():
    table = (ROOT / "docs/specification-and-code.md").read_text("utf-8").partition("\n## The rules of the design\n")[0]
    part = table.partition("\n## Where the code deviates\n")[2]
    rows = [line.strip("| ").split(" | ") for line in part.split("\n") if line.startswith("| ")]
    deviations = [row for row in rows if row[0] not in ("the specification", "---")]
    assert len(deviations) > 30
    assert all(len(row) == 4 and all(row) and "`" in row[3] for row in deviations)
    settings = Settings()
    assert settings.infrastructure_exit_codes == (75,)
    assert f"of more than {settings.build_timeout:.0f} s (`build_timeout`)" in part
    assert f"for up to {settings.llm_timeout:.0f} s (`llm_timeout`)" in part
    assert f"of more than {settings.build_output_limit:,} bytes (`build_output_limit`)" in part
    assert f"fewer than {SHORTEST_KEY_HERE} characters" in part
    assert all(f"`{name}`" in part for name in set(PROTECTED_ANYWHERE) ^ set(PROTECTED) | {".gitignore"})
    assert all(f"`{name}`" in part for name in (ATTEMPT_VARIABLE, RUN_VARIABLE))
    assert set(re.findall(r"`([^` ]+)`", part)) >= {"CON", "git~1", "..", "-", "~", "$"}
    named = set(re.findall(r"(?<![-\w`])`([a-z]+(?:_[a-z]+)+)`", part))
    assert named <= set(Settings._fields), named - set(Settings._fields)
