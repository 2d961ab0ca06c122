"""`code-commit log` as a page, as Markdown and as JSON: what they hold and do not let through, without a browser."""

import base64
import hashlib
import html.parser
import json
import os
import re
import shutil
import stat
import time
from importlib import resources
from pathlib import Path

import pytest
from command import Run, git, recorded
from page_runs import EVIL, IMAGE, NAME, embellish, hostile_run, recorded_run, write_page

from code_commit.commands.log import Arguments, export_log
from code_commit.project import find_project

KEY = "sk-12345678-abcdefgh"
MINUS = "\N{MINUS SIGN}"


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours (WCAG 2.2), from 1 to 21."""
    levels = []
    for colour in (one, other):
        parts = [part / 255 for part in bytes.fromhex(colour)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        levels.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05)
    return max(levels) / min(levels)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_of_the_page_has_the_contrast_of_wcag_aa(scheme):
    text = (resources.files("code_commit.commands.page") / "page.css").read_text("utf-8")
    colours: dict[str, str] = {}
    for block in re.findall(r":root \{(.*?)\}", text, re.DOTALL)[: scheme + 1]:
        colours |= dict(re.findall(r"--([\w-]+): #(\w{6})", block))
    grounds = ["page", "panel", "added", "added-mark", "removed", "removed-mark"]
    syntax = ["ink", "keyword", "string", "comment", "number", "function", "builtin"]
    pairs = [(text, ground) for text in syntax for ground in grounds]
    pairs += [
        (text, ground) for text in ("quiet", "accent", "good", "bad", "wait") for ground in ("page", "panel", "raised")
    ]
    pairs += [("wait", "wait-panel"), ("ink", "wait-panel"), ("ink", "bad-panel"), ("ink", "panel")]
    assert {pair: ratio for pair in pairs if (ratio := contrast(colours[pair[0]], colours[pair[1]])) < 4.5} == {}
    bars = ["llm", "change", "build", "build-failed", "cached", "input", "output"]
    assert [bar for bar in bars if contrast(colours[bar], colours["raised"]) < 1.2] == []
    assert len({colours[ground] for ground in ("page", "panel", "raised")}) == 3


class Page(html.parser.HTMLParser):
    """The tags, attributes and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.content: list[str] = []
        self.blocks: dict[str, str] = {}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        last = self.tags[-1][0] if self.tags else ""
        if last in ("script", "style") and last not in self.blocks:
            self.blocks[last] = data
        else:
            self.content.append(data)

    @property
    def text(self) -> str:
        return "".join(self.content)


MADE: dict[str, Path] = {}


def warning(message: str, kind: str = "review") -> dict[str, str]:
    return {"kind": kind, "message": message, "path": ""}


@pytest.fixture
def hostile(project_folder: Path, run_code_commit: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project of the hostile run: made once, a copy for each test."""
    if not MADE:
        folder = hostile_run(project_folder, run_code_commit)
        embellish(
            folder, model=f"m{EVIL}", message=f"It passes {IMAGE}", warnings=[warning(EVIL), warning(f"a\u202e{IMAGE}")]
        )
        MADE["project"] = shutil.copytree(project_folder, tmp_path_factory.mktemp("hostile") / "project")
    return shutil.copytree(MADE["project"], tmp_path_factory.mktemp("copy") / "project")


def page_of(root: Path) -> str:
    """The page of the latest run, made in this process."""
    export_log(find_project(root), Arguments(html=str(root / "page.html")))
    return (root / "page.html").read_text("utf-8")


def test_nothing_hostile_becomes_markup(hostile: Path, run_code_commit: Run, tmp_path: Path):
    page = Page(page_of(hostile))
    names = {tag for tag, _ in page.tags}
    assert not names & {"img", "iframe", "link", "object", "embed", "base", "b", "video", "audio", "source"}
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert [tag for tag, _ in page.tags].count("style") == 1
    for _, attributes in page.tags:
        assert not [
            name for name in attributes if name.startswith("on") or name in ("src", "style", "srcset", "action")
        ]
        assert re.match(r"(#[a-z0-9-]+|\./[\w%./-]+|)\Z", attributes.get("href") or "")
    for foreign in (EVIL, IMAGE, NAME, '"&lt;b&gt;"', "</td></table></script>", "<iframe srcdoc="):
        assert foreign in page.text
    assert "javascript:" not in page.text
    assert not {"\u202e", "\x1b"} & set(page.text)


def test_the_policy_allows_the_pages_own_style_and_script_only(hostile: Path, run_code_commit: Run, tmp_path: Path):
    page = Page(page_of(hostile))
    (policy,) = [tag["content"] for name, tag in page.tags if name == "meta" and tag.get("http-equiv")]
    hashes = [
        f"'sha256-{base64.b64encode(hashlib.sha256(page.blocks[kind].encode()).digest()).decode()}'"
        for kind in ("style", "script")
    ]
    assert policy == (
        f"default-src 'none'; style-src {hashes[0]}; script-src {hashes[1]}; base-uri 'none'; form-action 'none'"
    )


def test_the_page_tells_the_whole_run_in_the_order_of_a_review(hostile: Path):
    page = Page(page_of(hostile))
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {"changes", "attempt-1", "attempt-2", "attempt-3", "file-1", "attempt-2-file-1", "build-3", "cost"} <= set(
        ids
    )
    places = [
        page.text.index(said)
        for said in (
            f"3 attempts · 3 files +6 {MINUS}3",
            "Greet in German.",
            "I said goodbye.",
            "a\\u202e",
            "code-commit undo 20",
            "src/<img",
            "Attempt 1 initial",
            "rejected, nothing written: 2 reasons",
            "^^^build.sh",
            "Attempt 3 repair",
            "tokens in, cached",
            "41,000",
        )
    ]
    assert places == sorted(places)
    assert "✓ The build passes" in page.text
    targets = [
        attributes["href"] for tag, attributes in page.tags if tag == "a" and attributes["href"].startswith("./")
    ]
    assert len(targets) == 5 + 7 + 7 + 1
    assert all((hostile / target).is_file() for target in targets)


def test_a_failed_run_shows_the_end_of_its_build_first(project_folder: Path, run_code_commit: Run):
    (project_folder / "build.sh").write_text("#!/bin/sh\nseq -f 'line %g' 40\necho 'error: <b>'\nexit 3\n")
    recorded_run(project_folder, run_code_commit, ["^^^ok.txt\nok\n^^^end\n"], "--max-repairs", "0")
    text = Page(page_of(project_folder)).text
    end = text.split("From the build output of attempt 1")[1].split("Full output")[0]
    assert next(line for line in end.split("\n") if line) == "line 31"
    assert "error: <b>\n[build.sh: exit code 3" in end
    assert text.index("From the build output") < text.index("Changes of the whole run") < text.index("Build output")


def test_what_attempts_say_and_change_alike_is_shown_once(project_folder: Path, run_code_commit: Run):
    (project_folder / "build.sh").write_text("#!/bin/sh\nexit 1\n")
    answers = ["I see.\n^^^ok.txt\nwrong\n^^^end\n", "Then so.\n^^^ok.txt\nok\n^^^end\n"]
    recorded_run(project_folder, run_code_commit, [*answers, *answers])
    text = Page(page_of(project_folder)).text
    assert [text.count(said) for said in ("I see.", "Then so.")] == [1, 1]
    assert [text.count(f"The same as in attempt {number}.") for number in (1, 2, 3)] == [1, 2, 0]


def test_a_rejected_run_shows_what_to_do_next(project_folder: Path, run_code_commit: Run):
    answer = ["^^^build.sh\nexit 0\n^^^end\n"]
    done = run_code_commit(project_folder, *recorded(project_folder, *answer), "--on-rejected", "stop")
    for told in (done.stderr, Page(page_of(project_folder)).text):
        assert "Describe the task in more detail (-m), or use another --model, then run again." in told


def test_changed_tests_are_those_of_the_whole_run(project_folder: Path, run_code_commit: Run):
    """A test that a later attempt put back as it was is no change to look at, and lines add up over the attempts."""
    (project_folder / "build.sh").write_text("#!/bin/sh\ngrep -qx ok ok.txt\n")
    for name in ("test_a.py", "test_b.py", "test_gone.py"):
        (project_folder / name).write_text("one\n")
    git(project_folder, "add", "-A")
    git(project_folder, "commit", "-qm", "tests")
    first = "^^^test_a.py\n^^^end\n^^^test_b.py\none\ntwo\n^^^end\n^^^test_gone.py\n^^^delete\n"
    second = "^^^test_a.py\none\n^^^end\n^^^test_b.py\none\ntwo\nthree\n^^^end\n^^^ok.txt\nok\n^^^end\n"
    recorded_run(project_folder, run_code_commit, [first, second])
    page = Page(page_of(project_folder))
    told = page.text.split("Changed tests, CI files and build files")[1].split("Changes of the whole run")[0]
    lines = ["test_b.py is a test: only added, 2 lines", "test_gone.py is a test: deleted, 1 line"]
    assert "".join(told.split("\n")).startswith("".join(lines))
    markdown = export_log(find_project(project_folder), Arguments(markdown=True)).decode()
    assert [line for line in markdown.split("\n") if " is a test: " in line] == [f"- `{line}`" for line in lines]
    tables = [attributes["class"] for tag, attributes in page.tags if tag == "table" and "diff" in attributes["class"]]
    assert "diff one gone" in tables


def test_the_result_is_the_git_diff(hostile: Path):
    git(hostile, "add", "-A")
    counts = git(hostile, "diff", "--cached", "--numstat", "-z").split("\0")[:-1]
    page = Page(page_of(hostile))
    result = page.text.split("of the whole run")[1].split("Attempt 1 initial")[0]
    for added, removed, path in (row.split("\t") for row in counts):
        assert f"{path} +{added} {MINUS}{removed}" in " ".join(result.split())


def test_the_page_stays_when_the_tree_moves_on(hostile: Path):
    before = page_of(hostile)
    (hostile / "src/a.py").unlink()
    os.mkfifo(hostile / "src/a.py")
    assert page_of(hostile) == before
    (folder,) = (hostile / "agent-config/logs").iterdir()
    for contents in folder.glob("snapshot/*.contents"):
        contents.unlink()
    assert "is no longer known" in page_of(hostile)


def test_a_hunk_names_its_function_and_a_renamed_file_is_one(project_folder: Path, run_code_commit: Run):
    body = "def greet():\n" + "".join(f"    x = {number}\n" for number in range(12))
    (project_folder / "old.py").write_text(body)
    (project_folder / "moved.py").write_text("x\n")
    git(project_folder, "add", "-A")
    git(project_folder, "commit", "-qm", "more")
    answer = f"^^^ok.txt\nok\n^^^end\n^^^old.py\n{body.replace('x = 10', 'y')}^^^end\n"
    answer += "^^^moved.py\n^^^delete\n^^^new.py\nx\n^^^end\n"
    recorded_run(project_folder, run_code_commit, [answer])
    text = " ".join(Page(page_of(project_folder)).text.split())
    assert f"3 files +2 {MINUS}2" in text
    assert f"new.py +0 {MINUS}0 renamed from moved.py" in text
    assert "@@ -9,5 +9,5 @@ def greet():" in text
    summary = export_log(find_project(project_folder), Arguments(markdown=True)).decode()
    assert "- rename `moved.py` to `new.py` +0 -0" in summary


def test_a_test_that_was_renamed_away_and_then_rewritten_is_told_as_deleted(project_folder: Path, run_code_commit: Run):
    """The file under its new name is none, though the first answer's rename was a change of a test."""
    (project_folder / "tests").mkdir()
    body = "".join(f"x{number} = {number}\n" for number in range(20))
    (project_folder / "tests/test_a.py").write_text(body)
    git(project_folder, "add", "-A")
    git(project_folder, "commit", "-qm", "more")
    moved = f"^^^tests/test_a.py\n^^^delete\n^^^helpers.py\n{body}^^^end\n"
    rewritten = "^^^helpers.py\nready = True\n^^^end\n^^^ok.txt\nok\n^^^end\n"
    recorded_run(project_folder, run_code_commit, [moved, rewritten])
    summary = export_log(find_project(project_folder), Arguments(markdown=True)).decode()
    section = summary.partition("### Changed tests, CI files and build files\n\n")[2].partition("\n\n")[0]
    assert section == "- `tests/test_a.py is a test: deleted, 20 lines`"
    assert "What the LLM said" not in summary, "it said nothing beside the blocks"


@pytest.mark.parametrize(
    "harm",
    [
        lambda log: shutil.rmtree(log / "snapshot"),
        lambda log: [path.unlink() for path in log.glob("*-*")],
        lambda log: (log / "2-changes.diff").write_bytes(os.urandom(5000)),
        lambda log: (log / "2-build.txt").write_bytes(bytes(range(256)) * 100),
        lambda log: (log / "snapshot/changes-1.json").write_text("{}"),
        lambda log: ((log / "2-build.txt").unlink(), os.mkfifo(log / "2-build.txt")),
        lambda log: ((log / "2-build.txt").unlink(), (log / "2-build.txt").symlink_to("/etc/passwd")),
    ],
    ids=["no snapshot", "no files", "noise for a diff", "noise for a build", "bad snapshot", "a FIFO", "a link"],
)
def test_a_damaged_log_still_makes_a_page(hostile: Path, run_code_commit: Run, tmp_path: Path, harm):
    (folder,) = (hostile / "agent-config/logs").iterdir()
    harm(folder)
    text = page_of(hostile)
    assert "The build passes" in text
    assert "root:" not in text
    assert b"The build passes" in export_log(find_project(hostile), Arguments(markdown=True))


@pytest.mark.slow
def test_the_page_is_written_whole_and_private(hostile: Path, run_code_commit: Run, tmp_path: Path):
    target = write_page(hostile, tmp_path / "page.html", run_code_commit)
    target.chmod(0o644)
    (tmp_path / "link.html").symlink_to(target)
    done = run_code_commit(hostile, "log", "--html", str(tmp_path / "link.html"))
    assert done.stdout == f"{target}\n"
    assert (tmp_path / "link.html").is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["link.html", "page.html"]


def test_a_page_that_cannot_be_written_is_told_with_the_next_step(hostile: Path, run_code_commit: Run):
    for name, step in {"agent-config": "name a file", "nope/x.html": "create nope first"}.items():
        done = run_code_commit(hostile, "log", "--html", name)
        assert (done.returncode, f"; {step}\n" in done.stderr) == (2, True), done.stderr


@pytest.mark.slow
def test_what_is_no_page_of_ours_is_not_written_over(hostile: Path, run_code_commit: Run):
    for content in ("# The project\n", "<!doctype html>\n<html><title>mine</title>\n"):
        (hostile / "README.md").write_text(content)
        done = run_code_commit(hostile, "log", "--html", "README.md")
        assert done.returncode == 2
        assert "README.md exists and is not a page of a run" in done.stderr
        assert (hostile / "README.md").read_text() == content
    (hostile / "README.md").write_text("")
    assert run_code_commit(hostile, "log", "--html", "README.md").returncode == 0


@pytest.mark.parametrize("target", ["/dev/null", ".", "missing/page.html", "fifo", "n" * 300])
def test_what_is_no_file_is_left_alone(hostile: Path, run_code_commit: Run, target: str):
    os.mkfifo(hostile / "fifo")
    kind = stat.S_IFMT(Path("/dev/null").stat().st_mode)
    done = run_code_commit(hostile, "log", "--html", target)
    assert done.returncode == 2
    assert target in done.stderr
    assert stat.S_IFMT(Path("/dev/null").stat().st_mode) == kind


def test_the_page_on_standard_output(hostile: Path, run_code_commit: Run):
    done = run_code_commit(hostile, "log", "--html", "-")
    assert done.stdout.startswith("<!doctype html>")
    targets = re.findall(r'href="(\./[^"]+)"', done.stdout)
    assert targets
    assert all((hostile / target).is_file() for target in targets)
    assert run_code_commit(hostile, "log", "--html", "-", "--open").returncode == 2


@pytest.mark.slow
def test_open_starts_the_browser_on_the_page_in_the_log(hostile: Path, run_code_commit: Run, tmp_path: Path):
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    done = run_code_commit(hostile, "log", "--open", env={"BROWSER": f"{browser} %s"})
    assert done.returncode == 0, done.stderr
    (folder,) = (hostile / "agent-config/logs").iterdir()
    assert (tmp_path / "opened").read_text() == (folder / "page.html").as_uri()
    assert 'href="./1-query.txt"' in (folder / "page.html").read_text("utf-8")


def test_without_a_browser_the_page_is_written_and_named(hostile: Path, run_code_commit: Run, tmp_path: Path):
    (tmp_path / "git").symlink_to(str(shutil.which("git")))
    done = run_code_commit(hostile, "log", "--open", env={"BROWSER": "false", "PATH": str(tmp_path)})
    (folder,) = (hostile / "agent-config/logs").iterdir()
    assert (done.returncode, done.stdout) == (0, f"{folder}/page.html\n")
    assert done.stderr == "no browser could be started: open the page yourself\n"


def test_no_run_no_page(project_folder: Path, run_code_commit: Run):
    for arguments in (["--html", "x.html"], ["--markdown"], ["--json", "2026"], ["--open"]):
        done = run_code_commit(project_folder, "log", *arguments)
        assert done.returncode == 2
        assert "there is no run" in done.stderr
    assert run_code_commit(project_folder, "log", "--json").stdout == "[]\n"


def test_the_record_as_json(hostile: Path, run_code_commit: Run):
    (folder,) = (hostile / "agent-config/logs").iterdir()
    record = json.loads((folder / "run.json").read_text())
    one = json.loads(run_code_commit(hostile, "log", folder.name[:13], "--json").stdout)
    assert one == {**record, "attempts": one["attempts"]}
    assert json.loads(run_code_commit(hostile, "log", "--json").stdout) == [one]


def test_keys_do_not_reach_the_page(project_folder: Path, run_code_commit: Run):
    """Not in the colours of code either, where markup stands between the parts of a key."""
    key = "sk-12345678-class-abcdefgh<&>'wxyz"
    (project_folder / "a.py").write_text(f"key = {key}\n# {key}\n")
    recorded_run(project_folder, run_code_commit, ["^^^ok.txt\nok\n^^^end\n^^^a.py\n^^^end\n"])
    (project_folder / "agent-config/openai-key.txt").write_text(key)
    (project_folder / "agent-config/openai-key.txt").chmod(0o600)
    for form in (["--html", "-"], ["--markdown"], ["--json", "latest"]):
        printed = run_code_commit(project_folder, "log", *form).stdout
        assert "12345678" not in printed
        assert "abcdefgh" not in printed
        assert "a.py" in printed


@pytest.mark.parametrize("place", range(490, 502))
def test_no_piece_of_a_key_stands_where_a_line_was_cut(place, project_folder: Path, run_code_commit: Run):
    folder = recorded_run(project_folder, run_code_commit, ["^^^ok.txt\nno\n^^^end\n"], "--max-repairs", "0")
    (folder / "1-build.txt").write_text("x" * place + KEY + "\n" + "y" * (1_500 + place) + KEY + "\n")
    (project_folder / "agent-config/openai-key.txt").write_text(KEY)
    (project_folder / "agent-config/openai-key.txt").chmod(0o600)
    for arguments in (Arguments(html="-"), Arguments(markdown=True)):
        printed = export_log(find_project(project_folder), arguments).decode()
        assert "x" * 480 in printed
        assert "sk-12345" not in printed


def test_a_rejected_answer_after_a_failed_build_hides_nothing(project_folder: Path, run_code_commit: Run):
    recorded_run(project_folder, run_code_commit, ["^^^ok.txt\nno\n^^^end\n", "I cannot.\n"], "--max-repairs", "1")
    assert "From the build output of attempt 1" in Page(page_of(project_folder)).text
    assert "### From 1-build.txt" in export_log(find_project(project_folder), Arguments(markdown=True)).decode()


@pytest.mark.sweep
def test_huge_inputs_are_cut_and_say_so(project_folder: Path, run_code_commit: Run, tmp_path: Path):
    (project_folder / "build.sh").write_text(
        "#!/bin/sh\nyes 'a line of output' | head -c 20000000\necho the last line\n"
    )
    content = "".join(f"line {number} of many\n" for number in range(100_000))
    folder = recorded_run(
        project_folder, run_code_commit, [f"^^^ok.txt\n{content}^^^end\n^^^z.js\n{'x=1;' * 300_000}\n^^^end\n"]
    )
    assert (folder / "1-build.txt").stat().st_size > 20_000_000
    target = write_page(project_folder, tmp_path / "page.html", run_code_commit)
    assert target.stat().st_size < 10_000_000
    text = Page(target.read_text("utf-8")).text
    assert "more lines of this file are not shown; all of it: N-changes.diff" in text
    assert "lines before these, in 1-build.txt" in text
    assert "the last line" in text
    assert "more characters" in text


@pytest.mark.sweep
def test_a_page_of_16_files_and_15_mb_of_output_takes_little_time(project_folder: Path, run_code_commit: Run):
    (project_folder / "build.sh").write_text("#!/bin/sh\nyes '\x1b[32mok\x1b[0m a line' | head -c 15000000\nexit 1\n")
    for number in range(16):
        (project_folder / f"module_{number}.py").write_text(
            "".join(f"def f{line}():\n    return {line}\n" for line in range(200))
        )
    answer = "".join(
        f"^^^module_{number}.py\n"
        + "".join(f"def f{line}():\n    return -{line}\n" for line in range(200))
        + "^^^end\n"
        for number in range(16)
    )
    recorded_run(project_folder, run_code_commit, [answer], "--max-repairs", "0")
    started = time.process_time()
    page = page_of(project_folder)
    assert time.process_time() - started < 5
    assert len(page) < 5_000_000
    assert f"16 files +3,200 {MINUS}3,200" in page
    total = (max((project_folder / "agent-config/logs").iterdir()) / "1-build.txt").read_bytes().count(b"\n")
    assert f"data-n={total}" in page


def test_markdown_holds_the_run_and_lets_nothing_out_of_its_spans(hostile: Path, run_code_commit: Run):
    (folder,) = (hostile / "agent-config/logs").iterdir()
    record = json.loads((folder / "run.json").read_text())
    record["attempts"][-1]["build"]["exit_code"] = 1
    record["message"] = "``` <b>\n# heading"
    record["attempts"][1] |= {"asked": ["`a` <b>.py"], "build": None}
    (folder / "run.json").write_text(json.dumps(record))
    (folder / "3-build.txt").write_text("````\n</details><script>\n```\n\x1b[31m~~~ last\n")
    text = run_code_commit(hostile, "log", "--markdown").stdout
    assert f"3 attempts · 3 files +6 {MINUS}3 · 1 min 17 s · $0.19" in text
    assert "- rejected, nothing written: 2 reasons, 41,000 tokens in, 2,100 out, $0.1235" in text
    assert f"- create `{NAME}` +2 -0" in text
    assert "- delete `src/old.py` +0 -1" in text
    assert "```text\nGreet in German." in text
    assert "```text\nI said goodbye.\n```" in text
    assert "\n`````text\n````\n</details><script>\n```\n~~~ last\n`````\n" in text
    outside = re.sub(r"^(`{3,})text\n.*?\n\1\n", "", text, flags=re.DOTALL | re.MULTILINE)
    outside = re.sub(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", outside)
    assert not set(outside) & set("<>`\x1b\u202e")
    assert "heading" not in outside


def test_open_goes_with_a_page_only(hostile: Path, run_code_commit: Run):
    for arguments in (["--json"], ["--markdown"], ["--html", "-"]):
        done = run_code_commit(hostile, "log", "--open", *arguments)
        assert done.returncode == 2
        assert "--open" in done.stderr
        assert json.loads(done.stdout)["exit_code"] == 2 if "--json" in arguments else done.stdout == ""


@pytest.mark.slow
def test_pages_of_a_dry_run_an_undo_a_rollback_and_an_applied_response(
    project_folder: Path, run_code_commit: Run, tmp_path: Path
):
    good, bad = "^^^ok.txt\nok\n^^^end\n", "^^^ok.txt\nstill not\n^^^end\n^^^deep/new.txt\n^^^end\n"
    (tmp_path / "answer").write_text(good)
    recorded_run(project_folder, run_code_commit, [good], "--dry-run")
    text = Page(page_of(project_folder)).text
    assert "Verified, nothing was changed" in text
    assert "verified, not applied" in text
    assert "this would have been changed" in text
    assert f"ok.txt +1 {MINUS}1" in " ".join(text.split())
    assert f"would change 1 file +1 {MINUS}1" in " ".join(text.split())

    recorded_run(project_folder, run_code_commit, [bad], "--rollback", "--max-repairs", "0")
    text = Page(page_of(project_folder)).text
    assert "The build fails" in text
    assert "The run was rolled back" in text
    assert f"deep/new.txt +0 {MINUS}0 new It is empty." in " ".join(text.split())

    assert run_code_commit(project_folder, "apply", str(tmp_path / "answer")).returncode == 0
    text = Page(page_of(project_folder)).text
    assert "Applied, not built" in text
    assert "no LLM" in text

    assert run_code_commit(project_folder, "undo").returncode == 0
    text = Page(page_of(project_folder)).text
    assert "Undone" in text
    assert f"ok.txt +1 {MINUS}1" in " ".join(text.split())
    assert not re.search("Attempt|initial|Time and tokens", text)
    assert "Attempt" not in run_code_commit(project_folder, "log", "--markdown").stdout


@pytest.mark.slow
@pytest.mark.parametrize("undos", [1, 2])
def test_a_run_that_was_undone_says_so_and_offers_no_undo(undos: int, project_folder: Path, run_code_commit: Run):
    run = recorded_run(project_folder, run_code_commit, ["^^^ok.txt\nok\n^^^end\n"])
    for name in ("latest",) * undos:
        assert run_code_commit(project_folder, "undo", name).returncode == 0
    markdown = run_code_commit(project_folder, "log", "--markdown", run.name).stdout
    one = run_code_commit(project_folder, "log", run.name).stdout
    html = run_code_commit(project_folder, "log", "--html", "-", run.name).stdout
    row = run_code_commit(project_folder, "log").stdout.splitlines()[1]
    is_undone = undos == 1
    ending = "The build passes (undone since" if is_undone else "The build passes"
    assert (f"{ending}: its" in markdown, ending in markdown.splitlines()[0]) == (is_undone, True)
    assert ("no longer in the tree" in html, "code-commit undo 20" not in html) == (is_undone, is_undone)
    assert ("no longer in the tree" in one, " undone " in row) == (is_undone, is_undone)


NOTHING_CHANGED = {
    "there and back": (["^^^ok.txt\nno\n^^^end\n", "^^^ok.txt\nnot yet\n^^^end\n"], "In the end no file is different"),
    "rejected": (["no block"] * 2, "The run changed no file."),
}


@pytest.mark.parametrize(("answers", "said"), NOTHING_CHANGED.values(), ids=NOTHING_CHANGED)
def test_a_run_that_changed_nothing_says_so(answers, said, project_folder: Path, run_code_commit: Run):
    recorded_run(project_folder, run_code_commit, answers, "--max-repairs", "1")
    text = Page(page_of(project_folder)).text
    assert said in text
    assert re.search(r"2 attempts · \d", text)
    assert f"### Changes\n\n- {said}" in export_log(find_project(project_folder), Arguments(markdown=True)).decode()


def test_a_log_without_its_snapshot_says_why_no_change_is_shown(project_folder: Path, run_code_commit: Run):
    recorded_run(project_folder, run_code_commit, ["^^^ok.txt\nno\n^^^end\n"], "--max-repairs", "0")
    (journal,) = project_folder.glob("agent-config/logs/*/snapshot/changes-1.json")
    journal.write_text("{}")
    assert "It cannot be shown: the snapshot's changes-1.json is damaged" in Page(page_of(project_folder)).text
    summary = export_log(find_project(project_folder), Arguments(markdown=True)).decode()
    assert "### Changes\n\n- It cannot be shown: `the snapshot's changes-1.json is damaged" in summary


def test_a_page_names_an_undo_only_where_a_file_is_different(project_folder: Path, run_code_commit: Run):
    (project_folder / "build.sh").write_text("#!/bin/sh\ntrue\n")
    (project_folder / "ok.txt").write_text("ok\n")
    for text, is_named in (("ok", False), ("other", True)):
        recorded_run(project_folder, run_code_commit, [f"^^^ok.txt\n{text}\n^^^end\n"])
        assert ("To take them back" in Page(page_of(project_folder)).text) == is_named


def test_what_the_builds_changed_is_told(hostile: Path):
    (folder,) = (hostile / "agent-config/logs").iterdir()
    embellish(folder, build_changes=["Cargo.lock", IMAGE], new_files=2)
    said = f"The build also changed {IMAGE}, Cargo.lock and left 2 new files"
    assert said in " ".join(Page(page_of(hostile)).text.split())
    assert f"The build also `{said[15:]}`" in export_log(find_project(hostile), Arguments(markdown=True)).decode()


def test_counts_that_contradict_one_another_still_make_a_page(hostile: Path):
    (record,) = hostile.glob("agent-config/logs/*/run.json")
    facts = json.loads(record.read_text())
    for attempt in facts["attempts"]:
        attempt["usage"] = {"input": 0, "cached_input": 7, "output": 0}
    record.write_text(json.dumps(facts))
    assert "</html>" in page_of(hostile)


def test_a_killed_run_says_so(hostile: Path, run_code_commit: Run):
    (folder,) = (hostile / "agent-config/logs").iterdir()
    embellish(folder, status="running", exit_code=None, pid=2**22 - 3)
    assert "Killed while running" in Page(page_of(hostile)).text


@pytest.mark.slow
def test_odd_numbers_and_many_attempts_do_no_harm(hostile: Path, run_code_commit: Run):
    (folder,) = (hostile / "agent-config/logs").iterdir()
    record = json.loads((folder / "run.json").read_text())
    record["attempts"] = [dict(attempt) for attempt in record["attempts"] * 100]
    record["attempts"][0] |= {"seconds": -1.0, "cost_usd": 1e18, "change_seconds": 1e18}
    record["warnings"] = [warning("w" * 5_000)] * 1_000
    record["attempts"][1]["rejections"] = [{"path": "p", "line": 10**9, "rule": "r", "message": "m"}] * 10_000
    (folder / "run.json").write_text(json.dumps(record))
    page = page_of(hostile)
    assert len(page) < 10_000_000
    text = Page(page).text
    assert "200 more attempts are not shown" in text
    assert "9,800 more are in the log" in text
    assert "800 more are in the log" in text


def task_of(page: str) -> list[str]:
    return re.findall(r"<p>(.*?)</p>", page.split('id="task"')[1].split("</section>", maxsplit=1)[0])


def test_the_task_is_that_of_the_run_whatever_query_txt_and_the_prompt_say(project_folder: Path, run_code_commit: Run):
    query = "Make ok.txt say ok.\n\nAnd nothing else.\n"
    (project_folder / "agent-config/query.txt").write_text(query)
    folder = recorded_run(project_folder, run_code_commit, ["^^^ok.txt\nok\n^^^end\n"])
    (project_folder / "agent-config/query.txt").write_text("Something else.\n")
    (folder / "1-query.txt").write_text("[query]\nSomething else.\n[codebase]\n")
    assert task_of(page_of(project_folder)) == query.strip().split("\n")


def test_the_task_of_an_older_log_is_its_first_line(project_folder: Path, run_code_commit: Run):
    (project_folder / "agent-config/query.txt").write_text("Make ok.txt say ok.\nAnd nothing else.\n")
    folder = recorded_run(project_folder, run_code_commit, ["^^^ok.txt\nok\n^^^end\n"])
    (folder / "query.txt").unlink()
    assert task_of(page_of(project_folder)) == ["Make ok.txt say ok."]
