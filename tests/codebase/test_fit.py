"""`rollup --fit`: what stays whole, what becomes an outline or a name, that it fits, and that no outline is taken for a file."""

import json
from pathlib import Path

import pytest
from command import Run, git, module, recorded, the_log
from fake_apis import Answer
from fake_server import FakeServer

from code_commit.codebase.excerpts import shortened, telling_tests
from code_commit.codebase.fit import Chosen, Fill, Outlines
from code_commit.codebase.make import make_codebase, summary_of
from code_commit.codebase.parts import FileRequest, find_part
from code_commit.codebase.rank import survey_files
from code_commit.codebase.select import CodebaseRequest, Selection, read_files, select_files
from code_commit.codebase.text import Codebase, Section, file_section, names_at_end, part_of, read_sections
from code_commit.errors import NotSetUpError
from code_commit.project import find_project
from code_commit.redaction import Redactor
from code_commit.views import Name, Outline, Part, Seen, Whole, is_current, of_kind

ROLLUP = "agent-config/codeRollup.txt"


@pytest.fixture
def root(project_folder: Path) -> Path:
    """A project of 60 modules of 30 lines to 100, with a task about one of them."""
    (project_folder / "src").mkdir()
    for number in range(60):
        name = f"part_{number:02}"
        (project_folder / f"src/{name}.py").write_text(module(name, 30 + number))
    (project_folder / "src/slugs.py").write_text(module("make_slug", 90))
    (project_folder / "AGENTS.md").write_text("Use tabs.\n")
    (project_folder / "agent-config/query.txt").write_text("Slugs keep their dots; see part_07.py and ok.txt.\n")
    git(project_folder, "add", "-A")
    return project_folder


def fitted(run: Run, root: Path, *arguments: str) -> tuple[str, dict]:
    done = run(root, "rollup", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return (root / ROLLUP).read_text(), json.loads(done.stdout)


def outlined(root: Path, name: str) -> str:
    return f"--- {name} (outline, {(root / name).stat().st_size:,} bytes) ---\n"


def fit(root: Path, tokens: int | None, *, edits: bool = False) -> Codebase:
    query = (root / "agent-config/query.txt").read_text()
    return make_codebase(find_project(root), (), CodebaseRequest(fit=tokens, query=query, edits=edits), Redactor([]))


def test_the_task_says_what_stays_whole_the_others_are_outlines_then_names(root: Path):
    made = fit(root, 4000)
    text, outlines, names = made.text, of_kind(made.views, Outline), of_kind(made.views, Name)
    for name in ("AGENTS.md", "src/part_07.py", "src/slugs.py"):
        assert f"--- {name} ---\n{(root / name).read_text()}" in text, name
    outline = f"{outlined(root, 'src/part_59.py')}import os\ndef part_59(first, *, second=2):\n\n"
    assert outline in text or " part_59.py (1," in text
    assert len(outlines) > 5
    assert all(f"{outlined(root, name)}import os\ndef " in text for name in outlines)
    assert len(of_kind(made.views, Whole)) + len(outlines) + len(names) == 65
    assert sorted(names_at_end(text)) == sorted(names)
    assert made.left_out["no room"].keys() == names.keys()
    assert fit(root, 4000).text == text
    said = f"made to fit: {len(outlines)} outlines, {len(made.sizes)} files whole: .gitignore, AGENTS.md, "
    assert any(line.startswith(said) for line in summary_of(made, verbose=False))


def test_a_rare_word_of_the_task_goes_before_general_files(root: Path):
    for name in ("README.md", "AGENTS.md", "CLAUDE.md", "LLMInstructions.md"):
        (root / name).write_text(f"# {name}\n\n" + "The project and its total, told at length.\n" * 23)
    (root / "src/part_33.py").write_text(module("fractions", 240))
    (root / "agent-config/query.txt").write_text("Let fractions\nreturn the total.\n\nThe slugs as well.\n")
    git(root, "add", "-A")
    views = fit(root, 4000).views
    assert {"src/part_33.py", "AGENTS.md"} <= of_kind(views, Whole).keys()
    (root / "agent-config/query.txt").write_text("Let all\nreturn the total.\n\nThe fractions as well.\n")
    views = fit(root, 4000).views
    assert {"AGENTS.md", "CLAUDE.md", "LLMInstructions.md"} <= of_kind(views, Whole).keys()
    assert isinstance(views["README.md"], Outline)


@pytest.mark.parametrize("tokens", [150, 200, 300, 400])
def test_what_has_no_room_is_named_or_counted_an_empty_file_too(tokens: int, project_folder: Path):
    (project_folder / "shop").mkdir()
    (project_folder / "shop/__init__.py").touch()
    for name in ("shop/price_of_an_article_with_its_taxes.py", "tests/test_price_of_an_article.py", "long.py"):
        (project_folder / name).parent.mkdir(exist_ok=True)
        (project_folder / name).write_text(module("price", 60))
    made = fit(project_folder, tokens)
    names = of_kind(made.views, Name).keys()
    _, _, end = made.text.partition("--- FILES WITH NEITHER TEXT NOR OUTLINE HERE ---\n")
    named = names & set(names_at_end(made.text))
    assert len(made.sizes) + len(of_kind(made.views, Outline)) + len(names) == 7
    assert (f"and {len(names - named)} more" in end) == (named != names), end
    assert named == names or tokens < 300, made.text


@pytest.mark.parametrize("tokens", [300, 1000, 2500, 6000, 12_000, 20_000])
def test_it_fits_for_sure_and_fills_the_room(tokens: int, root: Path):
    size = len(fit(root, tokens).text) / 3.2
    assert (size <= tokens, size > tokens * 0.75 or tokens < 1000) == (True, True)


@pytest.mark.parametrize("tokens", [1, 30])
def test_no_room_for_even_one_file_is_refused(tokens: int, root: Path):
    with pytest.raises(NotSetUpError, match="are too few for even one file"):
        fit(root, tokens)


def test_a_refused_fit_leaves_the_rollup_as_it_is(root: Path, run_code_commit: Run):
    (root / ROLLUP).write_text("old")
    done = run_code_commit(root, "rollup", "--fit", "30")
    assert (done.returncode, (root / ROLLUP).read_text()) == (2, "old")
    assert "are too few for even one file" in done.stderr


def test_a_window_without_room_for_a_file_is_named(root: Path, run_code_commit: Run):
    (root / "agent-config/config.toml").write_text("context_window = 3000\n")
    done = run_code_commit(root, "rollup", "--fit", "--model", "chat:x", "--base-url", "http://127.0.0.1:9")
    assert done.returncode == 2
    assert (
        "the window of 3,000 tokens leaves no room for a file after the answer, the task and the system prompts: use"
        " --prompt-layout short, which has shorter system prompts, or a smaller --max-output-tokens, or use a model with"
        " a larger one\n"
    ) in done.stderr


def test_what_fits_is_as_it_would_be_without(root: Path):
    plain, made = fit(root, None), fit(root, 1_000_000)
    assert (made.text, made.views) == (plain.text, plain.views)


@pytest.mark.parametrize("command", [["rollup", "--fit"], ["prompt", "--rollup", "fit"]])
def test_without_a_model_it_is_said_how_to_go_on(command, root: Path, run_code_commit: Run):
    done = run_code_commit(root, *command)
    assert done.returncode == 2
    assert "name a --model (no key is needed here), or run code-commit rollup" in done.stderr
    assert run_code_commit(root, *command, "--model", "openai").returncode == 0
    assert run_code_commit(root, "rollup", "--fit", "2000").returncode == 0
    assert run_code_commit(root, "prompt", "--rollup", "file").returncode == 0


def test_without_a_number_it_fills_what_the_model_reads(root: Path, run_code_commit: Run):
    chat = ["--model", "chat:mine", "--base-url", "http://127.0.0.1:9/v1"]
    done = run_code_commit(root, "rollup", "--fit", *chat[:2])
    assert done.returncode == 2
    assert (
        "the context window of chat:mine is unknown: set context_window in config.toml, or run code-commit rollup"
        in done.stderr
    )
    (root / "agent-config/config.toml").write_text("context_window = 16_000\n")
    run_code_commit(root, "rollup")
    assert "the prompt does not fit" in run_code_commit(root, "check", *chat).stdout
    _, result = fitted(run_code_commit, root, "--fit", *chat[:2])
    assert result["outlines"]
    assert "the prompt does not fit" not in run_code_commit(root, "check", *chat).stdout


def test_no_number_of_400_digits_is_one_of_tokens(root: Path, run_code_commit: Run):
    done = run_code_commit(root, "rollup", "--fit", "9" * 400)
    assert (done.returncode, "--fit: must be a number of tokens" in done.stderr) == (2, True), done.stderr


def test_it_needs_a_task_and_a_number(root: Path, run_code_commit: Run):
    assert "put PATHSPECs before --fit" in run_code_commit(root, "rollup", "--fit", "src").stderr
    (root / "agent-config/query.txt").unlink()
    done = run_code_commit(root, "rollup", "--fit", "4000")
    assert (done.returncode, "query.txt is missing" in done.stderr) == (2, True)
    assert "give it with -m" not in done.stderr  # it takes none


@pytest.mark.slow
def test_no_answer_changes_an_outlined_or_named_file(root: Path, run_code_commit: Run):
    _, result = fitted(run_code_commit, root, "--fit", "2000")
    outlined = result["outlines"][0]
    named = next(file["path"] for file in result["left_out"] if file["reason"] == "no room")
    (root / "AGENTS.md").write_text(f"As in a rollup:\n--- {outlined} ---\n--- {named} ---\n")
    text, _ = fitted(run_code_commit, root, "--fit", "2000")
    assert f"\n--- {outlined} ---\n--- {named} ---\n" in text
    before = {name: (root / name).read_text() for name in (outlined, named)}
    for name in (outlined, named):
        options = recorded(root, f"^^^{name}\nimport os\n^^^end\n")
        done = run_code_commit(root, "--max-repairs", "0", "--on-rejected", "stop", *options)
        assert (done.returncode, "at most an outline of it" in done.stderr) == (4, True), done.stderr
    assert {name: (root / name).read_text() for name in (outlined, named)} == before
    whole = module("make_slug", 91)
    options = recorded(root, f"^^^ok.txt\nok\n^^^end\n^^^src/slugs.py\n{whole}^^^end\n")
    done = run_code_commit(root, *options)
    assert (done.returncode, (root / "src/slugs.py").read_text()) == (0, whole), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["spec", "cached"])
@pytest.mark.parametrize("is_repair", [False, True])
def test_what_an_answer_would_have_changed_unseen_is_whole_in_the_next_prompt(
    layout: str, *, is_repair: bool, root: Path, run_code_commit: Run
):
    (root / "secret.py").write_text(f"KEY = 'AKIA{'Q7' * 8}'\n")
    (root / ".gitignore").write_text("/agent-config\n/target\nlocal.py\n")
    (root / "local.py").write_text("PASSWORD = 'mine'\n")
    git(root, "add", ".gitignore", "secret.py")
    fitted(run_code_commit, root, "--fit", "2000")
    unseen = "^^^src/part_20.py\n^^^find\nok = 0\n^^^replace\nok = 1\n^^^end\n"
    unseen += "".join(f"^^^{name}\nok = 1\n^^^end\n" for name in ("src/slugs.py", "secret.py", "local.py"))
    change = f"^^^src/part_20.py\n{module('part_20', 52)}^^^end\n"
    answers = ["^^^ok.txt\nno\n^^^end\n"] * is_repair + [unseen, f"{change}^^^ok.txt\nnot yet\n\n^^^end\n"]
    done = run_code_commit(root, "--prompt-layout", layout, *recorded(root, *answers))
    assert (done.returncode, "there is no recorded response" in done.stderr) == (3, True), done.stderr
    answer = f"{change.replace('return', 'total -= 1; return')}^^^ok.txt\nok\n^^^end\n"
    recorded(root, *answers, answer)
    done = run_code_commit(root, "resume")
    assert (done.returncode, "total -= 1" in (root / "src/part_20.py").read_text()) == (0, True), done.stderr
    first, told, after = ((the_log(root) / f"{len(answers) + number}-query.txt").read_text() for number in (-1, 0, 1))
    addition = f"[codebase additions]\n--- src/part_20.py ---\n{module('part_20', 50)}\n"
    assert (addition in told, addition in first) == (True, False)
    assert "\n- line 1: src/part_20.py: [codebase] did not hold it whole, [codebase additions] does now: " in told
    assert "secret.py: is a secret, judging by its content (a key of AWS in line 1): leave its block out" in told
    assert "local.py: git ignores it" in told
    assert not any(hidden in text for hidden in ("AKIA", "mine") for text in (told, after))
    assert "--- FILE REPLACEMENT src/part_20.py" in after
    assert "--- src/part_20.py ---\n" not in after
    start = first.index("[query]" if layout == "spec" else "[codebase]")
    marks = "\n[codebase additions]\n", "\n[build.sh output]\n", "\n[answer]\n"
    end = min(at for at in (first.find(mark, start) for mark in marks) if at > 0)
    assert layout == "spec" or (end > start and first[start:end] in told)


def test_an_outlined_file_may_be_asked_for_and_then_changed(root: Path, run_code_commit: Run):
    _, result = fitted(run_code_commit, root, "--fit", "2000")
    named = next(file["path"] for file in result["left_out"] if file["reason"] == "no room")
    asks = f"^^^files\n{result['outlines'][0]}\n{named}\n^^^end\n"
    answer = f"^^^{named}\n^^^find\n    total += 49\n^^^replace\n    total += 50\n^^^end\n^^^ok.txt\nok\n^^^end\n"
    whole = "".join(f"--- {name} ---\n{(root / name).read_text()}\n" for name in (result["outlines"][0], named))
    done = run_code_commit(root, "--answer-format", "edits", *recorded(root, asks, answer))
    assert (done.returncode, "total += 50" in (root / named).read_text()) == (0, True), done.stderr
    assert f"\n[codebase additions]\n{whole}\n" in (the_log(root) / "2-query.txt").read_text()


@pytest.mark.parametrize("rollup", ["file", "fresh", "fit"])
def test_a_run_rolls_up_first_where_the_settings_say_so(rollup, root: Path, run_code_commit: Run):
    (root / "agent-config/config.toml").write_text(f'rollup = "{rollup}"\ncontext_window = 20_000\n')
    (root / ROLLUP).write_text("--- ok.txt ---\nolder\n")
    (root / "agent-config/query.txt").write_text("Not this one.\n")
    (root / "task.txt").write_text("Make ok.txt say ok; slugs keep their dots.\n")
    done = run_code_commit(root, "--query", "task.txt", *recorded(root, "^^^ok.txt\nok\n^^^end\n"))
    text = (root / ROLLUP).read_text()
    if rollup == "fresh":
        assert (done.returncode, "the prompt does not fit" in done.stderr) == (2, True), done.stderr
        assert text == "--- ok.txt ---\nolder\n"  # exit code 2 has written nothing
    else:
        assert done.returncode == 0, done.stderr
        prompt = next(root.glob("agent-config/logs/*/1-query.txt")).read_text()
        assert text in prompt
        assert ("(outline, " in text, module("make_slug", 90) in text) == (rollup == "fit", rollup == "fit")
    assert ("older" in text) == (rollup != "fit")
    (root / ROLLUP).write_text("old")
    run_code_commit(root, "-m", "Make ok.txt say ok.", *recorded(root, "^^^ok.txt\nok\n^^^end\n"))
    assert ("(outline, " in (root / ROLLUP).read_text()) == (rollup == "fit")


FAILING = """#!/bin/sh
grep -q '^ok$' ok.txt && exit 0
for number in $(seq 300); do echo "line $number: a word of what the build has to say"; done
echo "$PWD/src/part_40.py:7: AssertionError"
exit 1
"""


@pytest.fixture
def talkative(root: Path) -> Path:
    """The project with a build that says 14,000 characters before it fails, and a model that reads 51,200."""
    (root / "build.sh").write_text(FAILING)
    (root / "agent-config/config.toml").write_text('rollup = "fit"\ncontext_window = 16_000\nsandbox = "off"\n')
    git(root, "add", "-A")
    return root


def codebase_of(prompt: str) -> str:
    return prompt.partition("\n[codebase]\n")[2].partition("\n[")[0]


def test_a_repair_that_does_not_fit_gets_a_smaller_codebase(talkative: Path, run_code_commit: Run):
    root, sizes, config = talkative, [], talkative / "agent-config/config.toml"
    config.write_text(f'rollup_exclude = ["part_08.py"]\n{config.read_text()}')
    attempts = "^^^ok.txt\nno\n^^^end\n", "^^^ok.txt\nno\n\n^^^end\n", "^^^ok.txt\nok\n^^^end\n"
    done = run_code_commit(root, *recorded(root, *attempts))
    assert done.returncode == 0, done.stderr
    assert "a prompt did not fit: its codebase was made to fit into " in done.stderr
    for number in (1, 2, 3):
        prompt = (the_log(root) / f"{number}-query.txt").read_text()
        assert len(prompt) <= 16_000 * 3.2 / 2, "half of it is for the answer"
        assert ("line 300: a word of what the build has to say\n" in prompt) == (number > 1)
        assert ("--- src/part_40.py ---\n" in codebase_of(prompt)) == (number > 1), "the build named it"
        assert "--- src/part_07.py ---\n" in codebase_of(prompt)
        assert "excluded: src/part_08.py\n" in codebase_of(prompt), "from a smaller codebase too"
        sizes.append(len(codebase_of(prompt)))
    assert sizes[0] > 2 * sizes[1]
    assert abs(sizes[1] - sizes[2]) < sizes[2] // 10


def test_a_resumed_run_goes_on_with_the_smaller_codebase(talkative: Path, run_code_commit: Run):
    root = talkative
    answers = "^^^ok.txt\nno\n^^^end\n", "^^^src/slugs.py\npass\n^^^end\n^^^ok.txt\nok\n^^^end\n"
    done = run_code_commit(root, *recorded(root, *answers))
    assert (done.returncode, "there is no recorded response" in done.stderr) == (3, True), done.stderr
    asked = [(the_log(root) / f"{number}-query.txt").read_text() for number in (1, 2, 3)]
    assert "--- src/slugs.py ---\n" in codebase_of(asked[0])
    assert "--- src/slugs.py ---\n" not in codebase_of(asked[1])
    assert f"[codebase additions]\n--- src/slugs.py ---\n{module('make_slug', 90)}" in asked[2]
    recorded(root, *answers, answers[1])
    done = run_code_commit(root, "resume")
    assert done.returncode == 0, done.stderr
    assert (the_log(root) / "3-query.txt").read_text() == asked[2]
    assert all(len(prompt) <= 16_000 * 3.2 / 2 for prompt in asked)


def test_a_file_that_has_no_room_beside_the_codebase_is_not_shown(talkative: Path, run_code_commit: Run):
    root = talkative
    (root / "long.py").write_text(module("long", 1800))
    git(root, "add", "-A")
    (root / "agent-config/config.toml").write_text(
        f'{(root / "agent-config/config.toml").read_text()}answer_format = "auto"\n'
    )
    (root / "src/part_59.py").write_text(module("part_59", 250))
    answers = "^^^long.py\npass\n^^^end\n^^^src/part_59.py\npass\n^^^end\n", "^^^ok.txt\nok\n^^^end\n"
    done = run_code_commit(root, *recorded(root, *answers))
    assert done.returncode == 0, done.stderr
    first, second = ((the_log(root) / f"{number}-query.txt").read_text() for number in (1, 2))
    assert "long.py: it cannot be shown whole (too large with 3" in second
    assert "[codebase additions]\n--- src/part_59.py ---\n" in second
    assert ("^^^find" in first, "^^^find" in second) == (False, True), "a long file may be sent as edits"


@pytest.mark.parametrize(
    ("rollup", "window", "advice"),
    [("fresh", 52_000, 'rollup = "fit" in config.toml makes it fit'), ("file", 7_000, "lower build_output_limit")],
)
def test_without_fit_a_repair_that_does_not_fit_is_not_sent(
    rollup: str, window: int, advice: str, talkative: Path, run_code_commit: Run
):
    root = talkative
    (root / "agent-config/config.toml").write_text(f'context_window = {window}\nsandbox = "off"\n')
    answers = [Answer(f"^^^ok.txt\n{text}\n^^^end\n", input_tokens=window // 2) for text in ("no", "no", "ok")]
    with FakeServer(answers) as server:
        chat = ["--model", "chat:mine", "--base-url", server.base_url("chat")]
        done = run_code_commit(root, *chat, "--rollup", rollup)
        assert (done.returncode, f"; {advice}" in done.stderr, len(server.requests)) == (3, True, 1), done.stderr
        assert run_code_commit(root, "undo").returncode == 0
        fitted = run_code_commit(root, *chat, "--rollup", "fit")
        assert (fitted.returncode == 0) == ("makes it fit" in advice), fitted.stderr


def test_a_repair_names_no_fit_that_the_next_run_refuses(talkative: Path, run_code_commit: Run):
    """Nor does the next check offer a resume that sends the same prompt again."""
    root, told = talkative, {}
    for window in (4_400, 6_400, 7_000):
        (root / "agent-config/config.toml").write_text(f'context_window = {window}\nsandbox = "off"\n')
        (root / "agent-config/codeRollup.txt").write_text("--- ok.txt ---\nnot yet\n")
        chat = ["--model", "chat:mine", "--rollup", "file"]
        with FakeServer(answers=["^^^ok.txt\nno\n^^^end\n"]) as server:
            chat += ["--base-url", server.base_url("chat")]
            done = run_code_commit(root, *chat)
            assert (done.returncode, len(server.requests)) == (3, 1), done.stderr
        said = " ".join(run_code_commit(root, "check", *chat).stdout.split())
        assert ("takes them back" in said, "continues it" in said) == (True, False), said
        told[window] = "makes it fit" in done.stderr, "leave no room for a file" in done.stderr
        assert run_code_commit(root, "undo").returncode == 0
    assert told == {4_400: (False, True), 6_400: (False, True), 7_000: (False, False)}


@pytest.mark.parametrize("window", [1_000, 16_000])
def test_a_fit_is_advised_only_where_it_can_help(window: int, root: Path, run_code_commit: Run):
    (root / "agent-config/config.toml").write_text(f"context_window = {window}\n")
    run_code_commit(root, "rollup")
    chat = ["--model", "chat:mine", "--base-url", "http://127.0.0.1:9/v1"]
    said = " ".join(run_code_commit(root, "check", *chat).stdout.split())
    assert "the prompt does not fit" in said
    assert f"(query {(root / 'agent-config/query.txt').stat().st_size} bytes, " in said
    helps = run_code_commit(root, "prompt", "--rollup", "fit", *chat).returncode == 0
    assert helps == (window == 16_000) == ('rollup = "fit" in config.toml makes it fit' in said), said
    assert ("use a model with a larger window" in said) is not helps


@pytest.mark.parametrize("rollup", ["fresh", "fit", "select"])
def test_check_judges_the_codebase_that_the_run_will_make(rollup: str, root: Path, run_code_commit: Run):
    config, options = root / "agent-config/config.toml", recorded(root, "^^^ok.txt\nok\n^^^end\n")
    config.write_text(f'rollup = "{rollup}"\ncontext_window = 60_000\nsandbox = "off"\n')
    (root / "ok.txt").write_text("newer than the rollup\n")
    for old in ("", "--- ok.txt ---\nolder\n"):
        (root / ROLLUP).write_text(old) if old else (root / ROLLUP).unlink()
        done = run_code_commit(root, "check", *options)
        assert (done.returncode, "bytes, rewritten by each run\n" in done.stdout) == (0, True), done.stdout
        assert "changed since" not in done.stdout
        assert ((root / ROLLUP).read_text() if old else not (root / ROLLUP).exists()) == (old or True)
    config.write_text(f'{config.read_text()}rollup_exclude = ["*"]\n')
    done = run_code_commit(root, "check", *options)
    assert (done.returncode, "PROBLEM  codeRollup.txt  there is no file to roll up" in done.stdout) == (2, True)
    config.write_text(f'rollup = "{rollup}"\ncontext_window = 8_000\nsandbox = "off"\n')
    done = run_code_commit(root, "check", *options)
    assert ("the prompt does not fit" in done.stdout) == (done.returncode == 2) == (rollup == "fresh"), done.stdout


def test_of_a_long_file_the_definitions_that_hold_the_task_s_names_are_shown(root: Path):
    (root / "agent-config/query.txt").write_text("Let `wrap_500` wrap less.\n")
    text = "".join(f"def wrap_{number}(text):\n    return text[:{number}]\n\n\n" for number in range(1000))
    (root / "long.py").write_text(text)
    git(root, "add", "-A")
    assert not of_kind(fit(root, 30_000).views, Part), "an answer has whole files"
    made = fit(root, 30_000, edits=True)
    part = "--- long.py (lines 2001-2002 of 4,000) ---\ndef wrap_500(text):\n    return text[:500]\n"
    assert (part in made.text, list(of_kind(made.views, Part))) == (True, ["long.py"])
    assert len(made.sizes) > 60, "the room is for other files"


def test_a_cut_outline_keeps_the_class_of_a_definition_that_stays():
    classes = "".join(
        f"class Part{number}\n" + "".join(f"  def method_{each}_of_{number}\n" for each in range(20))
        for number in range(9)
    )
    kept = shortened(classes, survey_files([], "method_19_of_8 and method_18_of_7"), 3_000).splitlines()
    assert len(kept) < classes.count("\n")
    owner = ""
    for line in kept[:-1]:
        owner = owner if line.startswith("  ") else line
        assert line.rpartition("_")[2] == owner.removeprefix("class Part") or line == owner
    assert {"  def method_19_of_8", "class Part8", "class Part7"} <= set(kept)
    cut = shortened(f"class Slug\n  ... and 1,200 more\n{classes}", survey_files([], "a slug"), 20)
    assert cut == "class Slug\n... and 1,389 definitions more\n"


def test_words_that_most_tests_of_a_file_share_tell_nothing_and_the_best_ones_fill_the_room():
    checks = "        check()\n" * 30
    names = [f"test_table_keeps_row_{number}" for number in range(40)]
    names += ["test_table_escapes_quotes", "test_table_escapes_quotes_of_indexes", "test_table_quotes"]
    text = "class TestTable:\n" + "".join(f"    def {name}(self):\n{checks}\n" for name in names)
    files = [Section(name, len(text), file_section(name, text)) for name in ("test_table.py", "test_other.py")]
    survey = survey_files(files, "Let the table test escape quotes of indexes in a row", judges={"test_table.py"})

    def shown(room: int) -> list[str]:
        parts = dict(telling_tests(files, survey, room))
        assert parts.keys() <= {"test_table.py"}
        lines = "".join(part.content for part in parts.values()).splitlines()
        return [line.split("(")[0].split()[1] for line in lines if line.startswith("    def ")]

    assert shown(9_000) == ["test_table_escapes_quotes", "test_table_escapes_quotes_of_indexes"]
    assert shown(700) == ["test_table_escapes_quotes_of_indexes"], "whole, or not at all"
    assert shown(100) == []


def test_an_outline_without_room_for_all_has_methods_before_fields(root: Path):
    fields = "".join(f"    field_{number}: int = {number}\n" for number in range(200))
    methods = "".join(f"    def method_{number}(self) -> None:\n        pass\n\n" for number in range(20))
    (root / "src/slug_table.py").write_text(f"class SlugTable:\n{fields}\n{methods}# {'x' * 9000}\n")
    git(root, "add", "-A")
    made = fit(root, 4000)
    text = next(text for name, text in read_sections(made.text) if name.startswith("src/slug_table.py (outline"))
    assert (text.count("def method_"), "field_" in text) == (20, False)
    assert text.endswith("\n  ... and 200 more\n"), "nobody takes the fields for missing"


def test_one_outline_takes_at_most_a_tenth_of_the_room(root: Path):
    tests = "".join(
        f"def test_slugs_keep_dots_{number}():\n    assert make_slug({number})\n\n\n" for number in range(400)
    )
    (root / "src/test_slugs.py").write_text(tests)
    git(root, "add", "-A")
    made = fit(root, 4000)
    outlines = {name: text for name, text in read_sections(made.text) if name.endswith(" bytes)")}
    assert any(name.startswith("src/test_slugs.py (outline") for name in outlines)
    assert max(map(len, outlines.values())) <= 1_280 + 100
    assert len(outlines) > 5


@pytest.mark.parametrize("rules", [20, 400])
def test_what_tells_how_to_work_comes_before_files_that_the_task_names_or_its_cut_is_said(rules: int, root: Path):
    (root / "AGENTS.md").write_text("# Rules\n\n" + "".join(f"## Rule {n}\n\nIt holds.\n\n" for n in range(rules)))
    names = "".join(f"part_{number:02}.py " for number in range(60))
    (root / "agent-config/query.txt").write_text(f"Mend {names}\n")
    made = fit(root, 4000)
    said = [line for line in summary_of(made, verbose=False) if line.startswith("warning: AGENTS.md is too long")]
    assert (isinstance(made.views["AGENTS.md"], Whole), len(said)) == ((True, 0) if rules == 20 else (False, 1))


def test_a_file_whose_part_saves_nothing_is_whole():
    text = "import os\n\n\ndef core(a):\n" + "".join(f"    x{number} = a\n" for number in range(60))
    file = Section("core.py", len(text), file_section("core.py", text))
    part = find_part("core.py", text, FileRequest("core.py", ("core",))).part
    chosen = Chosen(survey=survey_files([file], "Let it be"), files={"core.py"}, parts={"core.py": part}, edits=True)
    made, views = chosen.fit(9_000)
    assert (made, isinstance(views["core.py"], Whole)) == (file.text, True)


def test_each_strategy_shows_each_file_once_and_no_more_than_there_is_room(root: Path):
    """The views and the text of a codebase are of one mind, whatever made them."""
    project, selection = find_project(root), Selection()
    names = select_files(project, (), CodebaseRequest()).names
    files = read_files(project.root, names, Redactor([]), selection)
    survey = survey_files(files, (root / "agent-config/query.txt").read_text())
    chosen = {"src/part_11.py", "src/part_12.py"}
    strategies = (
        Fill(survey=survey),
        Outlines(survey=survey, most=9, fixed={"src/part_01.py"}),
        Chosen(survey=survey, files=chosen, parts={"src/part_12.py": part_of("x\n", [(1, 1)])}, edits=True),
    )
    for strategy in strategies:
        text, views = strategy.fit(9_000)
        assert (len(text) <= 9_000, views.keys()) == (True, {file.name for file in survey.files})
        sections = {name for name, _ in read_sections(text)}
        for file in survey.files:
            is_whole, is_outline = isinstance(views[file.name], Whole), isinstance(views[file.name], Outline)
            outlined_as = f"{file.name} (outline, {file.bytes:,} bytes)"
            assert (file.name in sections, outlined_as in sections) == (is_whole, is_outline), file.name
            assert not is_whole or is_current(views[file.name], (root / file.name).read_text()) is Seen.SEEN
    assert isinstance(views["src/part_11.py"], Whole)
    assert isinstance(views["src/part_12.py"], Part)


def test_a_choice_is_told_the_files_that_are_called_by_a_rare_word_of_the_query():
    texts = {f"src/part_{number}.py": "width\n" * 100 for number in range(400)}
    texts |= {f"src/start_{number}.py": "start\n" * 100 for number in range(40)}
    texts["src/width.transform.py"] = "x = 1\n" * 100
    files = [Section(name, len(text), file_section(name, text)) for name, text in texts.items()]
    text, _ = Outlines(survey=survey_files(files, "Mend the width at the start"), most=0).fit(4_000)
    assert " width.transform.py" in text
    assert text.count(" start_") < 40, "a word in many names tells nothing"


def test_a_header_is_named_in_a_choice_with_its_source():
    texts = {f"src/part_{number}.c": "width\n" * 100 for number in range(400)}
    texts |= {"src/bio.c": "width, start\n" * 100, "src/bio.h": "x\n" * 300, "src/cob.h": "x\n" * 300}
    files = [Section(name, len(text), file_section(name, text)) for name, text in texts.items()]
    text, _ = Outlines(survey=survey_files(files, "Mend the width at the start"), most=0).fit(4_000)
    assert (" bio.h" in text, " cob.h" in text) == (True, False)


def test_of_a_drawing_that_was_not_chosen_nothing_is_shown():
    drawing = (
        f'<svg>\n<style>{"a" * 900}</style>\n<image href="data:image/png;base64,{"iVBORw0KGgo" * 400}"/>\n</svg>\n'
    )
    texts = {"a.py": "x = 1\n", "logo.svg": drawing}
    survey = survey_files([Section(name, len(text), file_section(name, text)) for name, text in texts.items()], "Do it")
    for chosen, is_shown in ((["a.py"], False), (["a.py", "logo.svg"], True)):
        _, views = Chosen(survey=survey, files=chosen, edits=True).fit(9_000)
        assert (isinstance(views["logo.svg"], Part), isinstance(views["a.py"], Whole)) == (is_shown, True)


def test_where_a_choice_is_short_the_outlines_of_its_first_files_are_longer():
    def many(word: str, number: int) -> str:
        return "".join(f"int {word}_{each}(void) {{ return {each}; }}\n" for each in range(number))

    texts = {"main.c": many("step", 700), "other.c": many("part", 4_000), "notes.md": "# A step\n\n" * 700}
    texts |= {"checks.c": many("check", 700)}
    files = [Section(name, len(text), file_section(name, text)) for name, text in texts.items()]
    survey = survey_files(files, "Let main.c take a step", judges={"checks.c"})
    sizes = {}
    for room in (400_000, 40_000, 15_000):
        text, _ = Outlines(survey=survey, most=40).fit(room)
        outlines = dict(read_sections(text))
        sizes[room] = [len(outlines[f"{file.name} (outline, {file.bytes:,} bytes)"]) for file in files]
        assert len(text) < min(room, 21_000)
    assert text.count("more\n") == 4, "what is left out is counted"
    main, other, *rest = sizes[400_000]
    assert (main > 6_000, 6_000 < other < 18_000, max(rest) < 1_800) == (True, True, True), sizes
    assert sizes[40_000][0] <= 4_100, "no outline has more than a tenth of the room"
    assert max(sizes[15_000]) < 1_800


def test_the_first_outlines_of_a_short_choice_share_what_is_left():
    text = "".join(f"int step_{number}(void) {{ return {number}; }}\n" for number in range(4_000))
    files = [Section(name, len(text), file_section(name, text)) for name in ("a.c", "b.c", "c.c")]
    shown, _ = Outlines(survey=survey_files(files, "Take a step"), most=40).fit(400_000)
    sizes = [len(outline) for title, outline in read_sections(shown) if "(outline, " in title]
    assert len(sizes) == len(files), "each has an outline"
    assert min(sizes) > 5_000, sizes
    assert max(sizes) - min(sizes) < 200, sizes


def test_the_outlines_of_a_choice_are_shorter_the_less_a_file_is_worth():
    text = "def slug(): ...\n" + "".join(
        f"def a_name_that_is_none_of_the_task_{number}(): ...\n" for number in range(30)
    )
    text += "".join(f"def slug_of_kind_{number}(): ...\n" for number in range(99))
    files = [Section(name, len(text), file_section(name, text)) for name in (f"{number:02}.py" for number in range(40))]
    shown, _ = Outlines(survey=survey_files(files, "Make each slug short"), most=40).fit(90_000)
    sizes = [len(part) for _, part in read_sections(shown)][:40]
    assert (min(sizes[:8]) > 1_500, min(sizes[8:20]) > 400, max(sizes[8:20]) < 600) == (True, True, True), sizes
    assert max(sizes[20:]) < 350
    assert "none_of_the_task" not in shown.partition("--- 08.py")[2], "lines that share a word come first"
