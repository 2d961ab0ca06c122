"""`code-commit log` as JSON, Markdown and a page: what they hold, what they do not let through, without a browser."""

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
from command import Run, git
from hypothesis import given, settings
from hypothesis import strategies as st
from page_runs import EVIL, IMAGE, NAME, embellish, hostile_run, recorded_run, write_page

from code_commit.commands.page.colours import (
    DARK_PANEL,
    LIGHT_PANEL,
    contrast,
    on_background,
    palette,
    readable,
    style_rules,
)
from code_commit.commands.page.export import export_log
from code_commit.commands.page.highlight import Highlighter, _time_limit, _TooSlowError, line_markup, visible
from code_commit.commands.page.patience import Patience
from code_commit.commands.page.side_by_side import align, side_by_side, text_of
from code_commit.commands.page.step_summary import code, fenced
from code_commit.commands.page.terminal import PLAIN, Style, TerminalMarkup, terminal_lines
from code_commit.commands.page.timeline import WIDTH, time_line
from code_commit.commands.page.unified import PatchError, parse_diff, patch
from code_commit.diff import FileEdit, diff_files
from code_commit.project import find_project
from code_commit.run_record import Attempt, BuildResult

TERMINAL = [
    ("plain", [[("plain", PLAIN)]]),
    ("\x1b[31mred\x1b[0m plain", [[("red", Style(1)), (" plain", PLAIN)]]),
    ("\x1b[1;4;38;5;208mx", [[("x", Style(208, bold=True, underline=True))]]),
    ("\x1b[38;2;255;0;0mx\x1b[39my", [[("x", Style(196)), ("y", PLAIN)]]),
    ("\x1b[38:2::255:0:0mx", [[("x", Style(196))]]),
    ("\x1b[38:5:9;1mx", [[("x", Style(9, bold=True))]]),
    ("\x1b[48;5;300;97mx", [[("x", Style(15, 255))]]),
    ("\x1b[38;5mx", [[("x", PLAIN)]]),
    ("\x1b[31ma\nb", [[("a", Style(1))], [("b", Style(1))]]),
    ("10%\r100%", [[("100%", PLAIN)]]),
    ("abcdef\rxy", [[("xycdef", PLAIN)]]),
    ("abcdef\rxy\x1b[K", [[("xy", PLAIN)]]),
    ("gone\x1b[2K\rnew", [[("new", PLAIN)]]),
    ("ab\bc", [[("ac", PLAIN)]]),
    ("a\r\nb\n", [[("a", PLAIN)], [("b", PLAIN)]]),
    ("\x1b]0;title\x07x", [[("x", PLAIN)]]),
    ("\x1b]8;;javascript:alert(1)\x1b\\link\x1b]8;;\x1b\\", [[("link", PLAIN)]]),
    ("\x1b]8;;never ended\nx", [[], [("x", PLAIN)]]),
    ("\x1bPq#0;2;0;0;0~\x1b\\x\x1b(B\x1b=\x1b[?25l\x1b[2J\x1b[10;10Hy", [[("xy", PLAIN)]]),
    ("\x9b31mx\x9b0m\x07\x00y", [[("x", Style(1)), ("y", PLAIN)]]),
    ("x\x1b", [[("x", PLAIN)]]),
    ("x\x1b[3", [[("x", PLAIN)]]),
    ("\x1b[" + "9" * 5000 + "Gx", [[(" " * 3999 + "x", PLAIN)]]),
]


@pytest.mark.parametrize(("output", "lines"), TERMINAL)
def test_terminal_output_is_read_as_a_terminal_shows_it(output, lines):
    assert list(terminal_lines(output)) == lines


@given(st.text(alphabet=st.sampled_from("\x1b[]8;:mKGP\\\x07\r\b\n0123<&\"'a\u202e\x9b\x9d"), max_size=80))
@settings(max_examples=100, deadline=None)
def test_no_output_makes_other_markup_than_spans(output):
    terminal = TerminalMarkup()
    markup = "".join(terminal.line(runs) for runs in terminal_lines(output))
    rest = re.sub(r'<span class="[a-z0-9 -]+">|</span>|</?i>', "", markup)
    assert not set(rest) & set("<>\"'\x1b\x9b\u202e")


def test_very_long_lines_of_output_are_cut():
    (runs,) = terminal_lines("x" * 1_000_000)
    assert len("".join(text for text, _ in runs)) < 5_000
    assert "996,000 more characters" in runs[-1][0]


def test_every_colour_of_a_terminal_can_be_read():
    rules = style_rules([pair for number in range(256) for pair in ((number, None), (number, number), (None, number))])
    poor = []
    for number in range(256):
        light, dark = re.findall(rf"\.t{number}{{color:#(\w+)}}", rules)
        pairs = [(tuple(bytes.fromhex(light)), LIGHT_PANEL), (tuple(bytes.fromhex(dark)), DARK_PANEL)]
        pairs += [(on_background(ink, number), palette(number)) for ink in (None, number)]
        poor += [(number, pair) for pair in pairs if contrast(*pair) < 4.5]
    assert poor == []


def test_a_colour_that_can_be_read_stays():
    assert readable((0, 0, 128), (255, 255, 255)) == (0, 0, 128)


def css_colours() -> tuple[dict[str, tuple[int, ...]], dict[str, tuple[int, ...]]]:
    text = (resources.files("code_commit.commands.page") / "page.css").read_text("utf-8")
    light, dark = (
        {name: tuple(bytes.fromhex(value)) for name, value in re.findall(r"--([\w-]+): #(\w{6})", block)}
        for block in re.findall(r":root \{(.*?)\}", text, re.DOTALL)[:2]
    )
    return light, {**light, **dark}


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_of_the_page_has_the_contrast_of_wcag_aa(scheme):
    colours = css_colours()[scheme]
    grounds = ["page", "panel", "added", "added-mark", "removed", "removed-mark"]
    syntax = ["ink", "keyword", "string", "comment", "number", "function", "builtin"]
    pairs = [(text, ground) for text in syntax for ground in grounds]
    pairs += [(text, ground) for text in ("quiet", "accent", "good", "bad", "wait") for ground in ("page", "panel")]
    pairs += [(text, f"{text}-panel") for text in ("good", "bad", "wait")] + [("ink", "wait-panel")]
    poor = {pair: contrast(colours[pair[0]], colours[pair[1]]) for pair in pairs}
    assert {pair: ratio for pair, ratio in poor.items() if ratio < 4.5} == {}
    bars = ["llm", "change", "build", "cost", "text", "reasoning", "cached"]
    assert [bar for bar in bars if contrast(colours[bar], colours["track"]) < 1.5] == []


ALIGNMENTS = [
    ([], ["a"], [(None, 0)]),
    (["a"], [], [(0, None)]),
    (["x = 1"], ["x = 2"], [(0, 0)]),
    (["return a + b"], ["import sys", "return a - b"], [(None, 0), (0, 1)]),
    (["a b c", "d e f"], ["d e g", "h i j"], [(0, None), (1, 0), (None, 1)]),
    (["alpha beta"], ["gamma delta"], [(0, 0)]),
    (["", "x y z"], ["x y z!"], [(0, None), (1, 0)]),
]


@pytest.mark.parametrize(("removed", "added", "pairs"), ALIGNMENTS)
def test_versions_of_a_line_stand_beside_each_other(removed, added, pairs):
    assert [(old, new) for old, new, _, _ in align(removed, added)] == pairs


def test_changed_words_are_marked():
    ((_, _, old, new),) = align(["    return f'Hello {name}'"], ["    return f'Hallo {name}!'"])
    assert old == ((13, 18),)
    assert new == ((13, 18), (25, 26))


def test_lines_of_another_kind_have_no_marks():
    ((_, _, old, new),) = align(["alpha beta"], ["gamma delta"])
    assert (old, new) == ((), ())


LINES = st.lists(
    st.sampled_from(["a", "b c", "", "x = 1", "x = 2", "-- a", "++ b", "@@ -1 +1 @@", "\\ x", "é\r"]), max_size=12
)


@given(LINES, LINES)
@settings(max_examples=100, deadline=None)
def test_alignment_keeps_every_line_once_and_in_order(removed, added):
    rows = align(removed, added)
    assert [old for old, *_ in rows if old is not None] == list(range(len(removed)))
    assert [new for _, new, *_ in rows if new is not None] == list(range(len(added)))


def test_a_block_of_many_lines_is_aligned_in_little_time():
    rows = align([f"old {i}" for i in range(60_000)], [f"new {i}" for i in range(50_000)])
    assert len(rows) == 60_000


@given(LINES, LINES, st.booleans(), st.booleans())
@settings(max_examples=100, deadline=None)
def test_a_diff_is_read_back_as_it_was_written(old, new, old_ends, new_ends):
    before, after = ("\n".join(lines) + "\n" * ends for lines, ends in ((old, old_ends), (new, new_ends)))
    edit = FileEdit('src/a "b"\té.py', before.encode(), after.encode())
    for file in parse_diff(diff_files([edit])[1]):
        assert file.path == edit.path
        assert patch(edit.old, file) == edit.new
        rows = [row for hunk in file.hunks for group in side_by_side(hunk, Patience(60)) for row in group.rows]
        assert [row.new.number for row in rows if row.new] == sorted({row.new.number for row in rows if row.new})
        texts = before.split("\n")
        for hunk in file.hunks:
            lines = [text_of(line) for line in hunk.lines if line.kind != "+"]
            for group in side_by_side(hunk, Patience(60)):
                assert all(lines[row.old.index] == texts[row.old.number - 1] for row in group.rows if row.old)


def test_new_deleted_empty_and_mode_changes_are_read():
    edits = [
        FileEdit("a", None, b""),
        FileEdit("b", None, b"x", mode=0o755),
        FileEdit("c", b"x\n", None),
        FileEdit("d", b"x\n", b"x\n", 0o644, 0o755),
    ]
    files = parse_diff(diff_files(edits)[1])
    assert [(file.path, file.notes[0], len(file.hunks)) for file in files] == [
        ("a", "new file mode 100644", 0),
        ("b", "new file mode 100755", 1),
        ("c", "deleted file mode 100644", 1),
        ("d", "old mode 100644", 0),
    ]
    assert files[2].deleted


@given(st.binary(max_size=200), st.integers(0, 400))
@settings(max_examples=100, deadline=None)
def test_a_damaged_diff_is_read_as_far_as_it_goes(noise, cut):
    whole = diff_files([FileEdit("a", b"1\n2\n3\n", b"1\nx\n3\n"), FileEdit("b", None, b"y\n")])[1]
    for file in parse_diff(whole[:cut] + noise + whole[cut:]):
        for hunk in file.hunks:
            assert sum(len(group.rows) for group in side_by_side(hunk, Patience(60))) <= len(hunk.lines)


def test_a_diff_of_another_content_does_not_fit():
    (file,) = parse_diff(diff_files([FileEdit("a", b"1\n2\n", b"1\n3\n")])[1])
    with pytest.raises(PatchError):
        patch(b"1\n4\n", file)


def test_code_is_coloured_and_stays_the_text_that_it_is():
    lines = ["def f(): # <b>", "    '''x", "\r\x0b''' ; return 1", ""]
    coloured = Highlighter().lines("src/a.py", lines)
    assert ["".join(text for _, text in line) for line in coloured] == lines
    assert ("k", "def") in coloured[0]
    assert ("c", "# <b>") in coloured[0]
    assert "&lt;b&gt;" in line_markup(coloured[0])


@pytest.mark.parametrize(
    "name", ["x", "a.html", "a.js", "a.php", "a.rs", "Makefile", "a.md", "a.toml", "a.json", "a.diff"]
)
def test_every_lexer_gives_the_text_back(name):
    lines = ["<?php '</script>' ?>", "```{ x: [1] }```", "\t'\"`${", "é\u2028\U0001f600", "fn main() {}"]
    assert ["".join(text for _, text in line) for line in Highlighter().lines(name, lines)] == lines


def test_a_regular_expression_that_never_ends_is_ended():
    started = time.monotonic()
    with pytest.raises(_TooSlowError), _time_limit(0.2):
        re.match(r"(a+)+$", "a" * 60 + "b")
    assert time.monotonic() - started < 10


def test_marks_end_when_their_patience_is_used_up():
    (file,) = parse_diff(diff_files([FileEdit("a", b"x = 1\n", b"x = 2\n")])[1])
    for patience, marks in ((Patience(60), ((4, 5),)), (Patience(0), ())):
        ((row,),) = [group.rows for group in side_by_side(file.hunks[0], patience)]
        assert row.new.marks == marks


def test_lines_made_to_be_slow_to_compare_cost_a_moment():
    old, new = (("." * 7 + ",") * 125)[:1000], (("." * 6 + ",") * 143)[:1000]
    started = time.monotonic()
    align([old] * 200, [new] * 200)
    assert time.monotonic() - started < 10


def test_colours_end_when_their_time_is_up():
    highlighter = Highlighter(0.05)
    line = "x = " + "(" * 50_000
    assert highlighter.lines("a.hs", [line] * 7)[0] == [("", line)]
    assert highlighter.lines("a.py", ["def"]) == [[("", "def")]]


def test_marks_and_colours_lie_over_each_other():
    markup = line_markup([("k", "def"), ("", " <ab>")], [(2, 6)])
    assert markup == ("<span class=k>de</span><mark><span class=k>f</span></mark><mark> &lt;a</mark>b&gt;")


def test_what_cannot_be_seen_is_shown_as_its_escape():
    assert visible("a\u202eb\x1b\u200b\ud800\tc") == r"a<i>\u202e</i>b<i>\x1b\u200b\ud800</i>" + "\tc"


def test_bars_lie_one_behind_the_other_and_within_the_chart():
    attempts = [
        Attempt(1, "initial", seconds=6.0, change_seconds=0.0001, build=BuildResult(1, None, False, 3.0, 0)),
        Attempt(2, "repair", seconds=float("inf"), build=BuildResult(0, None, False, -1.0, 0)),
        Attempt(3, "repair", seconds=1.0),
    ]
    lanes, span = time_line(attempts, 12.0)
    assert span == 12.0
    assert [(bar.kind, bar.x, bar.width) for bar in lanes[0]] == [
        ("llm", 0, 500),
        ("change", 500, 2),
        ("build", 500.01, 250),
    ]
    assert lanes[1] == []
    assert lanes[2][0].x + lanes[2][0].width <= WIDTH


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


@pytest.fixture
def hostile(project_folder: Path, run_code_commit: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project of the hostile run: made once, a copy for each test."""
    if not MADE:
        folder = hostile_run(project_folder, run_code_commit)
        embellish(folder, model=f"m{EVIL}", message=f"It passes {IMAGE}", warnings=[EVIL, f"a\u202e{IMAGE}"])
        MADE["project"] = shutil.copytree(project_folder, tmp_path_factory.mktemp("hostile") / "project")
    return shutil.copytree(MADE["project"], tmp_path_factory.mktemp("copy") / "project")


def page_of(root: Path) -> str:
    """The page of the latest run, made in this process."""
    export_log(find_project(root), {"html": str(root / "page.html")})
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


def test_the_page_tells_the_whole_run(hostile: Path, run_code_commit: Run, tmp_path: Path):
    page = Page(page_of(hostile))
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {"overview", "result", "attempt-1", "attempt-2", "attempt-3", "result-file-1", "attempt-2-file-1"} <= set(
        ids
    )
    for said in (
        "The build passes",
        "132,750",
        "$0.1934",
        "rejected, nothing written: 2 reasons",
        "^^^build.sh",
        "line 4",
    ):
        assert said in page.text
    targets = [
        attributes["href"] for tag, attributes in page.tags if tag == "a" and attributes["href"].startswith("./")
    ]
    assert len(targets) == 1 + 4 + 6 + 6
    for target in targets:
        assert (hostile / target).is_file()


def test_the_result_is_the_git_diff(hostile: Path, run_code_commit: Run, tmp_path: Path):
    git(hostile, "add", "-A")
    counts = git(hostile, "diff", "--cached", "--numstat", "-z").split("\0")[:-1]
    page = Page(page_of(hostile))
    result = page.text.split("what the run changed in all")[1].split("Attempt 1 initial")[0]
    for added, removed, path in (row.split("\t") for row in counts):
        assert f"{path} +{added} \N{MINUS SIGN}{removed}" in result


def test_the_result_is_put_together_from_the_log_when_the_tree_has_moved_on(
    hostile: Path, run_code_commit: Run, tmp_path: Path
):
    before = page_of(hostile)
    (hostile / "src/a.py").unlink()
    os.mkfifo(hostile / "src/a.py")
    assert page_of(hostile) == before
    (folder,) = (hostile / "agent-config/logs").iterdir()
    (folder / "3-changes.diff").unlink()
    text = page_of(hostile)
    assert "no longer to be put together" in text


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
    assert b"The build passes" in export_log(find_project(hostile), {"markdown": True})


def test_the_page_is_written_whole_and_private(hostile: Path, run_code_commit: Run, tmp_path: Path):
    target = tmp_path / "page.html"
    target.write_text("old")
    target.chmod(0o644)
    (tmp_path / "link.html").symlink_to(target)
    done = run_code_commit(hostile, "log", "--html", str(tmp_path / "link.html"))
    assert done.stdout == f"{target}\n"
    assert (tmp_path / "link.html").is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["link.html", "page.html"]


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


def test_open_starts_the_browser_on_the_page_in_the_log(hostile: Path, run_code_commit: Run, tmp_path: Path):
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    done = run_code_commit(hostile, "log", "--open", env={"BROWSER": f"{browser} %s"})
    assert done.returncode == 0, done.stderr
    (folder,) = (hostile / "agent-config/logs").iterdir()
    assert (tmp_path / "opened").read_text() == (folder / "page.html").as_uri()
    assert 'href="./1-query.txt"' in (folder / "page.html").read_text("utf-8")


def test_no_browser_is_an_error(hostile: Path, run_code_commit: Run, tmp_path: Path):
    (tmp_path / "git").symlink_to(str(shutil.which("git")))
    done = run_code_commit(hostile, "log", "--open", env={"BROWSER": "false", "PATH": str(tmp_path)})
    assert done.returncode == 2
    assert "no browser could be started" in done.stderr


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
    forms: list[dict[str, object]] = [{"html": "-"}, {"markdown": True}, {"json": True}]
    for options in forms:
        printed = export_log(find_project(project_folder), options).decode()
        assert "12345678" not in printed
        assert "abcdefgh" not in printed
        assert "a.py" in printed


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
    assert "bytes are not shown here; all of it: 1-build.txt" in text
    assert "the last line" in text
    assert "more characters" in text


def test_markdown_holds_the_run_and_lets_nothing_out_of_its_spans(hostile: Path, run_code_commit: Run):
    (folder,) = (hostile / "agent-config/logs").iterdir()
    record = json.loads((folder / "run.json").read_text())
    record["attempts"][-1]["build"]["exit_code"] = 1
    record["message"] = "``` <b>\n# heading"
    (folder / "run.json").write_text(json.dumps(record))
    (folder / "3-build.txt").write_text("````\n</details><script>\n```\n\x1b[31m~~~ last\n")
    text = run_code_commit(hostile, "log", "--markdown").stdout
    assert "| 1 | 30.0 s | - | 41,000 | 2,100 | $0.1235 | rejected, nothing written: 2 reasons |" in text
    assert f"- create `{NAME}` +2 -0" in text
    assert "- delete `src/old.py` +0 -1" in text
    assert "\n`````text\n````\n</details><script>\n```\n~~~ last\n`````\n" in text
    outside = re.sub(r"`````text\n.*?\n`````\n", "", text, flags=re.DOTALL)
    outside = re.sub(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", outside)
    assert not set(outside) & set("<>`\x1b\u202e")
    assert "heading" not in outside


@pytest.mark.parametrize("text", ["", " ", "`", "a``b", "`a", "a\nb", "x|y", "<b>", "\u202e", "``` ```"])
def test_a_code_span_is_one_span_on_one_line(text):
    span = code(text)
    ticks = re.match("`+", span)[0]
    inner = span[len(ticks) : -len(ticks)]
    assert "\n" not in span
    assert ticks not in re.findall("`+", inner)
    assert inner.strip("` ") in span


def test_a_fence_is_longer_than_what_it_holds():
    assert fenced(["`````"]) == ["``````text", "`````", "``````"]


def test_open_goes_with_a_page_only(hostile: Path, run_code_commit: Run):
    for arguments in (["--json"], ["--markdown"], ["--html", "-"]):
        done = run_code_commit(hostile, "log", "--open", *arguments)
        assert done.returncode == 2
        assert "--open" in done.stderr
        assert json.loads(done.stdout)["exit_code"] == 2 if "--json" in arguments else done.stdout == ""


def test_pages_of_a_dry_run_an_undo_a_rollback_and_an_applied_response(
    project_folder: Path, run_code_commit: Run, tmp_path: Path
):
    good, bad = "^^^ok.txt\nok\n^^^end\n", "^^^ok.txt\nstill not\n^^^end\n^^^deep/new.txt\n^^^end\n"
    (tmp_path / "answer").write_text(good)
    recorded_run(project_folder, run_code_commit, [good], "--dry-run")
    text = Page(page_of(project_folder)).text
    assert "Verified, nothing was changed" in text
    assert "The run changed no file." in text
    assert "verified, not applied" in text
    assert "attempt-1-file-1" in page_of(project_folder)

    recorded_run(project_folder, run_code_commit, [bad], "--rollback", "--max-repairs", "0")
    text = Page(page_of(project_folder)).text
    assert "The build still fails" in text
    assert "The run was rolled back" in text
    assert "deep/new.txt +0 \N{MINUS SIGN}0 new It is empty." in " ".join(text.split())

    assert run_code_commit(project_folder, "apply", str(tmp_path / "answer")).returncode == 0
    text = Page(page_of(project_folder)).text
    assert "Applied, not built" in text
    assert "no LLM" in text

    assert run_code_commit(project_folder, "undo").returncode == 0
    text = Page(page_of(project_folder)).text
    assert "Undone" in text
    assert "ok.txt +1 \N{MINUS SIGN}1" in text


def test_a_killed_run_says_so(hostile: Path, run_code_commit: Run):
    (folder,) = (hostile / "agent-config/logs").iterdir()
    embellish(folder, status="running", exit_code=None, pid=2**22 - 3)
    assert "Killed while it ran" in Page(page_of(hostile)).text


def test_odd_numbers_and_many_attempts_do_no_harm(hostile: Path, run_code_commit: Run):
    (folder,) = (hostile / "agent-config/logs").iterdir()
    record = json.loads((folder / "run.json").read_text())
    record["attempts"] = [dict(attempt) for attempt in record["attempts"] * 100]
    record["attempts"][0] |= {"seconds": -1.0, "cost_usd": 1e300, "change_seconds": 1e300}
    record["warnings"] = ["w" * 5_000] * 1_000
    record["attempts"][1]["rejections"] = [{"path": "p", "line": 10**9, "rule": "r", "message": "m"}] * 10_000
    (folder / "run.json").write_text(json.dumps(record))
    page = page_of(hostile)
    assert len(page) < 10_000_000
    text = Page(page).text
    assert "200 more attempts are not shown" in text
    assert "9,800 more reasons are in run.json" in text
    assert "800 more are in run.json" in text


def test_the_task_is_shown_while_it_is_the_one_of_the_run(hostile: Path, run_code_commit: Run):
    assert "Greet in German." in Page(page_of(hostile)).text
    (hostile / "agent-config/query.txt").write_text("Something else.\n")
    text = Page(page_of(hostile)).text
    assert "Greet in German." not in text
    assert "Something else." not in text
