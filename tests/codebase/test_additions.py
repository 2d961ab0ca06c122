"""The files that a failed build names and the codebase lacks: what is found, what is shown in a repair, what never is."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command import Run, git, recorded, the_log

from code_commit.codebase.additions import named_files
from code_commit.outputs import without_progress

ROOT = "/home/me/my shop"
PATHS = [
    "tests/test_slug.py", "src/lib.rs", "crates/a/src/lib.rs", "crates/a/src/deep.rs", "slug_test.go", "pkg/cart_test.go",
    "src/x.c", "src/x.h", "src/cart.ts", "app/(shop)/[id]/page.tsx", "src/__tests__/a.test.ts", "web/mod.mjs", "a.py",
    "src/main/java/shop/Cart.java", "src/test/java/shop/CartTest.java", "b/__init__.py", "c/__init__.py", "Makefile",
]  # fmt: skip
OUTPUTS = {
    "python": (f'  File "{ROOT}/tests/test_slug.py", line 7, in test_blanks\n', ["tests/test_slug.py"]),
    "pytest": ("tests/test_slug.py:7: AssertionError\nFAILED tests/test_slug.py::test_a - assert 1 == 2\n", ["tests/test_slug.py"]),
    "rustc": ("error[E0308]: mismatched types\n --> src/lib.rs:1:2\n  |\n", ["src/lib.rs"]),
    "rust panic": ("thread 't' panicked at crates/a/src/deep.rs:10:5:\n", ["crates/a/src/deep.rs"]),
    "go vet": ("./slug_test.go:12:5: undefined: Slug\n", ["slug_test.go"]),
    "go test": ("--- FAIL: TestCart (0.00s)\n    cart_test.go:12: got 3\n", ["pkg/cart_test.go"]),
    "gcc": ("In file included from src/x.c:1:\nsrc/x.h:3:5: error: unknown type name 'foo'\n", ["src/x.h", "src/x.c"]),
    "tsc": ("src/cart.ts(3,4): error TS2322: Type 'string'\n", ["src/cart.ts"]),
    "next": ("./app/(shop)/[id]/page.tsx:3:4\nType error: ...\n", ["app/(shop)/[id]/page.tsx"]),
    "jest": ("FAIL src/__tests__/a.test.ts\n    at Object.<anonymous> (src/cart.ts:3:5)\n", ["src/cart.ts", "src/__tests__/a.test.ts"]),
    "node": (f"file://{ROOT}/web/mod.mjs:3\n", ["web/mod.mjs"]),
    "maven": (f"[ERROR] {ROOT}/src/main/java/shop/Cart.java:[12,5] cannot find symbol\n", ["src/main/java/shop/Cart.java"]),
    "junit": ("\tat shop.CartTest.adds(CartTest.java:12)\n", ["src/test/java/shop/CartTest.java"]),
    "a sentence": ("See tests/test_slug.py. Or (a.py).\n", ["tests/test_slug.py", "a.py"]),
    "those with lines first": ("a.py ok\nslug_test.go ok\npkg/cart_test.go:3\n", ["pkg/cart_test.go", "a.py", "slug_test.go"]),
    "those of tests that passed": (
        ("tests/test_slug.py::test_ok FAILED [ 9%]\na.py::test_b PASSED  [10%]\nPASS src/__tests__/a.test.ts (5 s)\n"
        "ok 1 - src/x.c\nnot ok 2 - slug_test.go\nsrc/cart.ts ok\nerror: not ok in src/x.h ok\nsee Makefile\n"),
        ["tests/test_slug.py", "slug_test.go", "src/x.h"],
    ),
    "those that passed, in the forms of Go, GoogleTest and CTest": (
        ("--- PASS: src/x.c (0.01s)\n[       OK ] a.py (3 ms)\n3/9 Test #3: src/x.h ......   Passed    0.02 sec\n"
        "src/cart.ts:3: error\n"),
        ["src/cart.ts"],
    ),
    "a test that is said to begin, and then to pass": (
        "Running src/x.c ...\nsrc/x.c: all passed\nRunning a.py ...\na.py: error\nRunning src/x.h ...\nsrc/cart.ts:3: error\n",
        ["src/cart.ts", "a.py", "src/x.h"],
    ),
    "all that was built": (
        "".join(f"cc {path}\n" for path in PATHS if path not in ("a.py", "src/cart.ts")) + "a.py: failed\nsrc/cart.ts:3: x\n",
        ["src/cart.ts", "a.py"],
    ),
    "Windows": ("src\\cart.ts(3,4): error TS2322\nC:\\work\\my shop\\src\\x.c(7): error C2065\n", ["src/cart.ts", "src/x.c"]),
    "an end that two have": ("__init__.py:3 lib.rs:4\n", []),
    "other trees": ("/usr/lib/python3/a.py:3 node_modules/src/x.c:4 /opt/src/lib.rs:1 ../a.py\n", []),
    "parts of names": ("data.py src/x.cc aa.py tests/test_slug.pyc\n", []),
}  # fmt: skip


@pytest.mark.parametrize(("output", "named"), OUTPUTS.values(), ids=OUTPUTS)
def test_files_are_found_in_what_builds_print(output, named):
    assert list(named_files(output, PATHS, ROOT)) == named


WITH_BLANKS = [
    "src/my file.c", "src/x.c", "b/c.py", "a b/c.py", "App/My Form.cs", "foo (1).txt", "web/it's.mjs", "site/(auth group)/x,y.ts",
    "my tests/t 1.py",
]  # fmt: skip
NAMED_WITH_BLANKS = {
    "gcc": ("src/my file.c:3:5: error: x\n", {"src/my file.c": {3}}),
    "gcc, on the way": ("In file included from src/my file.c:1:\nsrc/x.c:3: error\n", {"src/x.c": {3}, "src/my file.c": set()}),
    "python": (f'  File "{ROOT}/a b/c.py", line 3, in f\n', {"a b/c.py": {3}}),
    "another file of the end of one": ("b/c.py:3: x\n", {"b/c.py": {3}}),
    "MSBuild": (f"{ROOT}/App/My Form.cs(3,4): error CS1002: ; expected [{ROOT}/x.csproj]\n", {"App/My Form.cs": {3}}),
    "MSBuild, on Windows": ("C:\\work\\my shop\\App\\My Form.cs(3,4): error CS1002\n", {"App/My Form.cs": {3}}),
    "a number in parentheses": ("foo (1).txt:9: bad (see foo (1).txt).\n", {"foo (1).txt": {9}}),
    "node": ("file:///home/me/my%20shop/web/it's.mjs:3\n", {"web/it's.mjs": {3}}),
    "jest": ("    at f (src/my file.c:3:5)\n    at g (my file.c:4:5)\n", {"src/my file.c": {3, 4}}),
    "next": ("./site/(auth group)/x,y.ts:3:4\n", {"site/(auth group)/x,y.ts": {3}}),
    "make, with backslashes": ("make: *** [Makefile:3: src/my\\ file.c] Error 1\n", {"src/my file.c": set()}),
    "pytest": ("FAILED my tests/t 1.py::test_a - x\n", {"my tests/t 1.py": set()}),
    "a copy of the project": ("/tmp/q/my shop/src/my file.c:8\n", {"src/my file.c": {8}}),
    "parts of names": ("amy file.c:3 my file.cc:3 my\nfile.c:3 a b c.py my tests\n", {}),
}  # fmt: skip


@pytest.mark.parametrize(("output", "named"), NAMED_WITH_BLANKS.values(), ids=NAMED_WITH_BLANKS)
def test_a_file_of_the_project_decides_where_its_name_ends(output, named):
    assert named_files(output, WITH_BLANKS, ROOT) == named


def test_the_way_of_a_compiler_to_what_failed_has_no_line_numbers():
    output = (
        "In file included from src/x.h:3,\n                 from src/x.c:4:5:\nsrc/lib.rs:1:2:   required by substitution of 'f'\n"
        "a.py:8:9:   required from here\nsrc/cart.ts:5:6: error: x\n"
    )
    lines = {"a.py": {8}, "src/cart.ts": {5}}
    assert named_files(output, PATHS, ROOT) == {**lines, "src/x.h": set(), "src/x.c": set(), "src/lib.rs": set()}


def test_marks_of_single_tests_are_counted_where_they_fill_lines():
    dots, last, code = f"{'.' * 71}F [ 50%]\n", f"{'x' * 30}{'.' * 9}\n", "^" * 30 + "\n"
    assert without_progress(f"a\n{dots * 40}{last}b\n") == "a\n[... 41 lines of marks are not shown here ...]\nb\n"
    kept = (
        f"a\n{dots * 2}b\n....\n....\n....\n{code}c = {'1, ' * 30}\n" + "one_two_three_four_five_six_seven_eight\n" * 9
    )
    assert without_progress(kept) == kept


def test_files_are_found_in_a_copy_of_the_project_that_a_build_made():
    output = (
        "\t/tmp/tmp.1/src/example.org/shop/slug_test.go:9 +0x16c\n/go/other/a.py:3 /x/shop/node_modules/src/x.c:4\n"
    )
    assert named_files(output, PATHS, "/home/me/shop") == {"slug_test.go": {9}}
    output = (
        "\t/tmp/x/go/slug_test.go:9 +0x16c\n/tmp/x/go/pkg/cart_test.go:3\n/usr/a.py:3: /usr/lib/a.py:4 /usr/b.py:1\n"
    )
    assert named_files(output, PATHS, "/home/me/shop") == {"slug_test.go": {9}, "pkg/cart_test.go": {3}}


SECRET = "-----BEGIN RSA PRIVATE KEY-----\n" + "a" * 64 + "\n"
TEST = "assert 1 == 2  # the test\n"
TREE = {
    "t/first.py": TEST,
    "t/crlf.py": "x = 1\r\ny = 2",
    "t/held.py": "held = 1\n",
    "t/large.py": "x\n" * 4100,
    "t/.env": "PASSWORD=x\n",
    "t/id_rsa": SECRET,
    "t/secret.py": SECRET,
    "t/encrypted.py": "PASSWORD=x\n",
    "t/ignored.py": "ignored = 1\n",
    "t/binary.py": "\0",
    "t/empty.py": "",
    "agent-config/mine.py": "mine = 1\n",
}


@pytest.fixture
def project(project_folder: Path) -> Path:
    """Its build names every file of TREE, once ok.txt does not say ok."""
    (project_folder / "t").mkdir()
    (project_folder / ".gitignore").write_text("/agent-config\n/target\nignored.py\n")
    for name, content in TREE.items():
        (project_folder / name).write_bytes(content.encode())
    (project_folder / ".gitattributes").write_text("encrypted.py filter=git-crypt\n")
    (project_folder / "t/link.py").symlink_to("first.py")
    names = "".join(f"{name}:1: see ok.txt:1\\n" for name in [*sorted(TREE), "t/link.py", "t/new.py"])
    (project_folder / "build.sh").write_text(
        f"#!/bin/sh\necho 'new = 1' >t/new.py\ngrep -qx ok ok.txt || {{ printf '{names}'; exit 1; }}\n"
    )
    (project_folder / "agent-config/codeRollup.txt").write_text(
        "--- t/held.py ---\nheld = 1\n\n" + "--- ok.txt ---\nnot yet\n\n"
    )
    git(project_folder, "add", "-A", "-f", "t/ignored.py")
    git(project_folder, "rm", "-q", "--cached", "t/ignored.py")
    git(project_folder, "add", "-A")
    git(project_folder, "commit", "-qm", "more")
    return project_folder


ANSWERS = [
    "^^^ok.txt\nno\n^^^end\n",
    "^^^ok.txt\nno\n\n^^^end\n",
    "^^^t/first.py\nassert True\n^^^end\n^^^ok.txt\nok\n^^^end\n",
]


def test_a_repair_shows_the_files_that_the_build_names_and_the_codebase_lacks(project: Path, run_code_commit: Run):
    (project / "agent-config/config.toml").write_text("codebase_additions = true\nstrict = true\n")
    done = run_code_commit(project, *recorded(project, *ANSWERS))
    assert done.returncode == 0, done.stderr  # strict: what is added counts as seen
    for number in (2, 3):
        prompt = (the_log(project) / f"{number}-query.txt").read_bytes().decode()
        added = f"\n[codebase additions]\n--- t/crlf.py ---\nx = 1\r\ny = 2\n\n--- t/first.py ---\n{TEST}\n--- t/new.py ---\nnew = 1\n\n\n[file repl"
        assert added in prompt
        assert "PASSWORD=x" not in prompt
        assert "PRIVATE KEY" not in prompt


def test_nothing_is_added_unless_it_is_wanted(project: Path, run_code_commit: Run):
    assert run_code_commit(project, *recorded(project, *ANSWERS)).returncode == 0
    assert "[codebase additions]\n" not in (the_log(project) / "2-query.txt").read_text()


def test_what_only_an_earlier_repair_was_shown_counts_as_unseen(project: Path, run_code_commit: Run):
    (project / "agent-config/config.toml").write_text("codebase_additions = true\nstrict = true\n")
    (project / "build.sh").write_text("#!/bin/sh\ngrep -qx no ok.txt && echo t/first.py:1: wrong\ngrep -qx ok ok.txt\n")
    answers = recorded(project, ANSWERS[0], "^^^ok.txt\nstill not\n^^^end\n", ANSWERS[2])
    done = run_code_commit(project, *answers, "--max-repairs", "2")
    shown = [TEST in (the_log(project) / f"{number}-query.txt").read_text() for number in (2, 3)]
    assert shown == [True, False]
    assert (done.returncode, (project / "t/first.py").read_text()) == (4, TEST), done.stderr


def test_of_installed_packages_nothing_is_added(project: Path, run_code_commit: Run):
    (project / "agent-config/config.toml").write_text("codebase_additions = true\n")
    (project / "env/lib").mkdir(parents=True)
    (project / "env/pyvenv.cfg").touch()
    (project / "env/lib/y.py").write_text("of_another = 1\n")
    (project / "build.sh").write_text(
        "#!/bin/sh\necho env/lib/y.py:1: wrong; echo t/first.py:1: wrong\ngrep -qx ok ok.txt\n"
    )
    done = run_code_commit(project, *recorded(project, "^^^ok.txt\nno\n^^^end\n", "^^^ok.txt\nok\n^^^end\n"))
    assert done.returncode == 0, done.stderr
    prompt = (the_log(project) / "2-query.txt").read_text()
    assert (TEST in prompt, "of_another" in prompt) == (True, False)


# What an answer asks to see


def asking(*names: str) -> str:
    return "\n".join(["^^^files", *names, "^^^end", ""])


SEEN = ("t/first.py", "t/crlf.py", "t/large.py", "build.sh", "Cargo.lock", "UserSpecification.md", ".gitignore")
HIDDEN = (
    "t/.env", "t/id_rsa", "t/secret.py", "t/encrypted.py", "t/binary.py", "t/link.py", "t/ignored.py", "t/no.py",
    "agent-config/mine.py", "agent-config/query.txt", "../outside.py", "/etc/hostname", ".git/config",
)  # fmt: skip


def record_of(project: Path) -> dict:
    return json.loads((the_log(project) / "run.json").read_text())


@pytest.mark.parametrize("is_repository", [True, False])
@pytest.mark.parametrize("layout", ["spec", "cached"])
def test_files_asked_for_are_shown_unless_secret_or_foreign(
    layout: str, *, is_repository: bool, project: Path, run_code_commit: Run
):
    (project / "Cargo.lock").write_text("locked = 1\n")
    (project / "UserSpecification.md").write_text("Specified.\n")
    (project.parent / "outside.py").write_text("outside = 1\n")
    if not is_repository:
        (project / ".git").rename(project.parent / "git")
    hidden = [name for name in HIDDEN if is_repository or name != ".git/config"]
    answers = recorded(project, asking(*SEEN[:3]), asking(*SEEN[3:], *hidden), "^^^ok.txt\nok\n^^^end\n")
    done = run_code_commit(project, *answers, "--prompt-layout", layout, "--protect", "t/large.py")
    assert done.returncode == 0, done.stderr
    first, second, third = ((the_log(project) / f"{number}-query.txt").read_bytes().decode() for number in (1, 2, 3))
    for name in SEEN:
        text = (project / name).read_bytes().decode()
        shown = f"--- {name} ---\n{text}"
        assert (shown in first, shown in second, shown in third) == (False, name in SEEN[:3], True), name
    told = "shown whole from now on: .gitignore, Cargo.lock, UserSpecification.md, build.sh; not shown: "
    assert f"\nAttempt 2 asked to see files and changed nothing; {told}" in third
    for text in ("PASSWORD=x", "PRIVATE KEY", "ignored = 1", "mine = 1", "outside = 1", "[core]"):
        assert text not in third
    attempts = [(attempt["kind"], attempt["verdict"]) for attempt in record_of(project)["attempts"]]
    assert attempts == [("initial", "chosen"), ("retry", "chosen"), ("retry", "applied")]
    assert record_of(project)["attempts"][0]["asked"] == list(SEEN[:3])
    assert f"asks to see {', '.join(sorted(SEEN[:3]))}, nothing written" in run_code_commit(project, "log", "-1").stdout


def test_a_file_that_an_answer_changed_is_asked_for_as_it_is_now(project: Path, run_code_commit: Run):
    answers = ["^^^t/first.py\nchanged = 1\n^^^end\n", asking("t/first.py", "t/crlf.py"), "^^^ok.txt\nok\n^^^end\n"]
    done = run_code_commit(project, *recorded(project, *answers))
    assert done.returncode == 0, done.stderr
    prompt = (the_log(project) / "3-query.txt").read_bytes().decode()
    assert "[codebase additions]\n--- t/crlf.py ---\n" in prompt
    assert prompt.count("changed = 1\n") == prompt.count("--- FILE REPLACEMENT t/first.py ---\nchanged = 1\n") == 1
    assert TEST not in prompt


def test_a_file_that_has_no_room_in_the_prompt_is_not_shown(project: Path, run_code_commit: Run):
    (project / "agent-config/config.toml").write_text("context_window = 70000\nmax_output_tokens = 1000\n")
    (project / "t/large.py").write_text("x = 1\n" * 100_000)
    answers = recorded(project, asking("t/large.py", "t/first.py"), "^^^ok.txt\nok\n^^^end\n")
    done = run_code_commit(project, *answers)
    assert done.returncode == 0, done.stderr
    told = "shown whole from now on: t/first.py; not shown: t/large.py (too large with 600,000 characters)\n"
    assert told in (the_log(project) / "2-query.txt").read_text()


def test_where_nobody_knows_how_much_the_model_reads_files_have_a_limit_too(project: Path, run_code_commit: Run):
    for name, lines in {"a": 40_000, "b": 20_000, "c": 20_000, "d": 1_000}.items():
        (project / f"t/{name}.py").write_text("x = 123456\n" * lines)
    answers = recorded(project, asking("t/a.py", "t/b.py"), asking("t/c.py", "t/d.py"), "^^^ok.txt\nok\n^^^end\n")
    done = run_code_commit(project, *answers)
    assert done.returncode == 0, done.stderr
    prompt = (the_log(project) / "3-query.txt").read_text()
    assert "shown whole from now on: t/b.py; not shown: t/a.py (too large with 440,000 characters)" in prompt
    assert "shown whole from now on: t/d.py; not shown: t/c.py (too large with 220,000 characters)" in prompt


@pytest.mark.parametrize(
    ("options", "number"), [(["--max-repairs", "1"], 2), (["--max-repairs", "0"], 1), (["--dry-run"], 1)]
)
def test_a_list_that_nothing_can_follow_ends_the_run(
    options: list[str], number: int, project: Path, run_code_commit: Run
):
    before = (project / "ok.txt").read_text()
    done = run_code_commit(project, *recorded(project, *[asking("t/first.py")] * 2), *options)
    assert done.returncode == 4, done.stderr
    assert "the answer asks to see files and changes nothing: t/first.py\n" in done.stderr
    ways = {
        1: "Name them in the task, and let the prompt show them with --rollup fit.",
        2: "The prompt already shows them whole. Say in the task what to change in them, or use another --model.",
    }
    assert ways[number] in done.stderr
    assert ways[3 - number] not in done.stderr
    assert "The project has no" not in done.stderr
    record = record_of(project)
    assert (record["status"], record["attempts"][-1]["verdict"], len(record["attempts"])) == (
        "rejected",
        "chosen",
        number,
    )
    prompt = (the_log(project) / f"{number}-query.txt").read_text()
    assert ("This is the last answer that will be used" in prompt, (project / "ok.txt").read_text()) == (True, before)


def test_the_end_names_a_listed_path_that_is_not_there(project: Path, run_code_commit: Run):
    answer = asking("t/first.py: f", "t/nosuch.py: f, g", "gone.txt:1-3")
    done = run_code_commit(project, *recorded(project, answer), "--max-repairs", "0")
    told = "\n  The project has no t/nosuch.py, gone.txt: name the right files in the task.\n"
    assert (done.returncode, told in done.stderr) == (4, True), done.stderr


def test_a_list_is_nothing_to_apply(project: Path, run_code_commit: Run):
    (project / "agent-config/answer.txt").write_text(asking("t/first.py"))
    done = run_code_commit(project, "apply", "agent-config/answer.txt")
    assert (done.returncode, "asks to see files and changes nothing: t/first.py" in done.stderr) == (4, True)


@pytest.mark.slow
@pytest.mark.parametrize("event", ["responded", "chosen", "asking"])
def test_killed_after_a_list_it_goes_on_and_asks_nothing_twice(event: str, project: Path, run_code_commit: Run):
    answers = recorded(project, asking("t/first.py"), "^^^ok.txt\nok\n^^^end\n")
    program = (
        "import os, sys; from code_commit.runs.progress import Progress; from code_commit.cli import main\n"
        "def step(self, record, event):\n"
        f"    if event == {event!r} and (event != 'asking' or len(record.attempts) == 2): os.kill(os.getpid(), 9)\n"
        "Progress.step = step\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    killed = subprocess.run(
        [sys.executable, "-P", "-c", program, *answers], cwd=project, capture_output=True, check=False
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    (project / "agent-config/recorded/1-response.txt").unlink()
    done = run_code_commit(project, "resume")
    assert done.returncode == 0, done.stderr
    assert f"--- t/first.py ---\n{TEST}" in (the_log(project) / "2-query.txt").read_text()
