import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from command import Run, git
from fake_server import FakeServer

import code_commit
from code_commit import NotSetUpError, api, rollup, run
from code_commit.errors import ApplyError
from code_commit.runs.record import Event, RunRecord
from code_commit.settings import Price


def record_answers(root: Path, *answers: str) -> str:
    (root / "agent-config" / "recorded").mkdir()
    for number, answer in enumerate(answers, start=1):
        (root / "agent-config" / "recorded" / f"{number}-response.txt").write_text(answer)
    return "replay:agent-config/recorded"


def set_up_as_init_does(root: Path, run_code_commit: Run, *answers: str) -> None:
    """Give a project the config.toml of `init`, with a model that gives these answers."""
    assert run_code_commit(root, "init").returncode == 0
    config = root / "agent-config/config.toml"
    config.write_text(f'model = "{record_answers(root, *answers)}"\n{config.read_text("utf-8")}')


def test_a_run_as_a_call(project_folder: Path, capfd):
    events = []
    model = record_answers(project_folder, "^^^ok.txt\nno\n^^^end\n", "^^^ok.txt\nok\n^^^end\n")
    record = run(
        project_folder, model=model, on_step=lambda record, event: events.append((len(record.attempts), event))
    )
    assert (record.status, record.exit_code) == ("success", 0)
    assert (project_folder / "ok.txt").read_text() == "ok\n"
    assert [event for event in events if event[1] == "built"] == [(1, "built"), (2, "built")]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("answers", "status", "code"),
    [(["^^^ok.txt\nno\n^^^end\n"], "build_failed", 1), (["no block"], "rejected", 4), ([], "llm_error", 3)],
)
def test_a_run_that_fails_returns_its_record_too(answers, status, code, project_folder: Path):
    record = run(project_folder, model=record_answers(project_folder, *answers), max_repairs=0)
    assert (record.status, record.exit_code) == (status, code)


def test_what_a_run_changed_and_its_undo_as_calls(project_folder: Path, capfd):
    answer = "^^^ok.txt\nok\n^^^end\n^^^tests/test_a.py\none\n^^^end\n"
    record = run(project_folder, model=record_answers(project_folder, answer))
    found = api.diff(project_folder)
    assert [(each.path, each.kind, each.lines_added) for each in found.changes] == [
        ("ok.txt", "", 1),
        ("tests/test_a.py", "test", 1),
    ]
    (project_folder / "agent-config" / "change.diff").write_bytes(found.diff)
    git(project_folder, "apply", "--check", "-R", "agent-config/change.diff")
    assert [each.path for each in api.diff(project_folder, record.run, paths=["tests"]).changes] == ["tests/test_a.py"]
    (project_folder / "ok.txt").write_text("mine\n")
    with pytest.raises(ApplyError, match=r" changed after 20.*, so nothing was restored"):
        api.undo(project_folder)
    undone = api.undo(project_folder, paths=["tests/"])
    assert (undone.exit_code, undone.undoes, (project_folder / "tests").exists()) == (0, record.run, False)
    assert (project_folder / "ok.txt").read_text() == "mine\n"
    assert api.undo(project_folder, record.run, force=True).exit_code == 0
    assert (project_folder / "ok.txt").read_text() == "not yet\n"
    assert capfd.readouterr() == ("", "")


def test_diff_and_undo_as_calls_know_key_work_tree_and_attempt(project_folder: Path):
    (project_folder / ".git").rename(project_folder.parent / ".git")
    git(project_folder, "add", "-A")
    key, wrong = "key-of-the-test-0123456789", "^^^ok.txt\nno\n^^^end\n"
    model = record_answers(project_folder, wrong, f"^^^ok.txt\nok\n^^^end\n^^^b.txt\n{key}\n^^^end\n")
    assert run(project_folder, model=model).exit_code == 0
    (project_folder / "agent-config" / "openai-key.txt").write_text(key)
    (project_folder / "agent-config" / "openai-key.txt").chmod(0o600)
    found = api.diff(project_folder).diff.decode()
    assert ("+++ b/project/b.txt" in found, key in found) == (True, False), found
    assert api.undo(project_folder, attempt=2).exit_code == 0
    assert ((project_folder / "ok.txt").read_text(), (project_folder / "b.txt").exists()) == ("no\n", False)


def test_ctrl_c_in_a_call_is_recorded_as_an_interruption(project_folder: Path):
    """Python's own handler raises KeyboardInterrupt, which no handler of ours has seen."""

    def interrupt(_: RunRecord, event: Event) -> None:
        if event == "building":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(project_folder, model=record_answers(project_folder, "^^^ok.txt\nok\n^^^end\n"), on_step=interrupt)
    (folder,) = api.list_runs(project_folder)
    record = api.read_record(folder)
    assert (record.status, record.exit_code) == ("interrupted", 130)
    assert not (folder / "traceback.txt").exists()


def test_of_two_threads_that_run_in_one_tree_one_is_refused(project_folder: Path):
    """The one that applies is not disturbed: what it leaves is not taken for an interrupted apply's."""
    model = record_answers(project_folder, "^^^ok.txt\nok\n^^^end\n^^^b.txt\nb\n^^^end\n")
    (project_folder / "build.sh").write_text("#!/bin/sh\nsleep 0.3\ngrep -q ok ok.txt && grep -q b b.txt\n")
    (project_folder / "agent-config" / "codeRollup.txt").write_text("--- ok.txt ---\nnot yet\n")
    staging = project_folder / "agent-config" / ".txn"
    refusals = []

    def run_meanwhile(_: RunRecord, event: Event) -> None:
        if event == "building":
            for makes_staging in (True, False):  # as while files are changed, and when they are
                staging.mkdir() if makes_staging else staging.rmdir()
                with ThreadPoolExecutor(1) as thread, pytest.raises(NotSetUpError) as refused:
                    thread.submit(run, project_folder, model=model).result()
                refusals.append(str(refused.value))

    record = run(project_folder, model=model, on_step=run_meanwhile)
    assert f"process {os.getpid()} is running code-commit in this tree" in refusals[0]
    assert f"another code-commit is running here (process {os.getpid()})" in refusals[1]
    assert record.exit_code == 0
    assert (project_folder / "b.txt").read_text() == "b\n"


def test_the_codebase_and_the_task_as_calls(project_folder: Path, capfd):
    (project_folder / ".env").write_text("KEY=x\n")
    (project_folder / "new.txt").write_text("new\n")
    rolled_up = rollup(project_folder, exclude=["build.sh"])
    assert set(rolled_up.sizes) == {".gitignore", "new.txt", "ok.txt"}
    assert rolled_up.left_out["looks like a secret"] == {".env": ""}
    record = run(
        project_folder, query="Say it.\nLoud.", model=record_answers(project_folder, "^^^ok.txt\nok\n^^^end\n")
    )
    assert (record.exit_code, record.query) == (0, "Say it.")
    prompt = (project_folder / record.log_dir / "1-query.txt").read_text()
    assert "[query]\nSay it.\nLoud.\n" in prompt
    assert "--- new.txt ---\nnew\n" in prompt
    assert capfd.readouterr() == ("", "")
    with pytest.raises(NotSetUpError, match="matches no file, or only ignored ones"):
        rollup(project_folder, ["nowhere"])


STATE = """
import ctypes, json, os, resource, signal, sys, threading
import subprocess
import sys
from pathlib import Path
import code_commit, code_commit.api

prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else lambda *_: 0

def state():
    subreaper = ctypes.c_int()
    prctl(37, ctypes.byref(subreaper), 0, 0, 0)
    bell = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(bell)
    status = Path("/proc/self/status").read_text() if sys.platform == "linux" else ""
    kept = ("Umask", "SigBlk", "SigIgn", "SigCgt", "NoNewPrivs", "Seccomp", "CapEff")
    return {
        "dumpable": prctl(3, 0, 0, 0, 0),
        "subreaper": subreaper.value,
        "limits": {name: resource.getrlimit(getattr(resource, name)) for name in dir(resource) if "RLIMIT" in name},
        "handlers": {number: str(signal.getsignal(number)) for number in signal.valid_signals()},
        "bell": bell,
        "timer": signal.getitimer(signal.ITIMER_REAL),
        "status": [line for line in status.splitlines() if line.startswith(kept)],
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "group": (os.getsid(0), os.getpgid(0), os.nice(0)),
        "threads": [thread.name for thread in threading.enumerate()],
        "python": [list(sys.path), sys.pycache_prefix, sys.warnoptions, str(sys.unraisablehook), str(sys.excepthook)],
        "streams": [os.get_blocking(number) for number in range(3)],
    }

for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGALRM):
    signal.signal(number, lambda *_: None)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
_, bell = os.pipe()
os.set_blocking(bell, False)
signal.set_wakeup_fd(bell)
prctl(4, 1, 0, 0, 0)
resource.setrlimit(resource.RLIMIT_CORE, resource.getrlimit(resource.RLIMIT_CORE)[1:] * 2)
before = state()
try:
    CALL
except code_commit.NotSetUpError as error:
    print(error)
after = state()
sys.exit("\\n".join(f"{name}: {before[name]} -> {after[name]}" for name in before if before[name] != after[name]) or None)
"""


@pytest.mark.parametrize(
    "call",
    [
        "assert code_commit.run(model=MODEL).exit_code == 0",
        "assert code_commit.run(model=MODEL, sandbox='off', build_timeout=0.3).exit_code == 1",
        "code_commit.run(model='replay:nowhere')",
        "assert 'build.sh' in code_commit.rollup(select=True, model=MODEL).sizes",
    ],
)
def test_a_call_leaves_the_process_as_it_was(call, project_folder: Path):
    names = [f"part_{number}.py" for number in range(40)]
    for name in names:
        (project_folder / name).write_text(f"# {'x' * 3000}\n")
    answer = "^^^files\nok.txt\n^^^end\n" if "select" in call else "^^^ok.txt\nok\n^^^end\n"
    model = record_answers(project_folder, answer)
    if "timeout" in call:
        call = call.replace("build_timeout", "max_repairs=0, build_timeout")
        (project_folder / "build.sh").write_text("#!/bin/sh\nsleep 60\n")
    script = STATE.replace("CALL", call).replace("MODEL", repr(model))
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=project_folder, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert ("no folder nowhere" in done.stdout) == ("nowhere" in call)


def test_runs_leave_no_descriptor_open(project_folder: Path):
    model = record_answers(project_folder, "^^^ok.txt\nok\n^^^end\n")
    run(project_folder, model=model)
    before = sorted(Path("/dev/fd").iterdir())
    for _ in range(3):
        assert run(project_folder, model=model).exit_code == 0
    assert sorted(Path("/dev/fd").iterdir()) == before


def test_a_run_that_cannot_begin_raises(project_folder: Path):
    with pytest.raises(NotSetUpError, match="no folder nowhere"):
        run(project_folder, model="replay:nowhere")
    with pytest.raises(NotSetUpError, match="did you mean 'max_repairs'"):
        run(project_folder, max_repair=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "or give it with query="),
        ({"query": " "}, "describe it with query="),
        ({"query": "x", "model": ""}, "for any other server set model=chat:NAME and base_url=URL"),
        ({"query": "x", "model": "chat:x"}, "model=chat: needs base_url="),
        ({"query": "x", "model": "gemini", "max_cost": 0.000001}, "max_cost=1e-06 is too low"),
    ],
)
def test_a_problem_of_a_call_names_its_arguments(arguments, message, project_folder: Path):
    (project_folder / "agent-config/query.txt").unlink()
    (project_folder / "agent-config/gemini-key.txt").write_text("test-key-0123456789")
    (project_folder / "agent-config/gemini-key.txt").chmod(0o600)
    if arguments.get("model") == "":
        (project_folder / "agent-config/gemini-key.txt").unlink()
    with pytest.raises(NotSetUpError) as caught:
        run(project_folder, **{"model": "replay:agent-config"} | arguments)
    assert message in str(caught.value)
    problems = "\n".join(api.check(project_folder, **{"model": "replay:agent-config"} | arguments))
    assert message in problems
    assert not re.search(r"(^| )--?[a-z]", str(caught.value) + problems)


def test_what_a_user_wrote_is_left_as_it_is_in_a_message(project_folder: Path):
    name = "after -m --max-cost 3"
    with pytest.raises(NotSetUpError, match=f"there is no folder {name} with"):
        run(project_folder, model=f"replay:{name}")
    assert f"there is no folder {name} with recorded responses" in api.check(project_folder, model=f"replay:{name}")


def test_a_chat_key_alone_is_told_to_a_run_and_to_a_fleet(project_folder: Path):
    (project_folder / "agent-config/chat-key.txt").write_text("test-key-0123456789")
    (project_folder / "agent-config/chat-key.txt").chmod(0o600)
    message = "there is a key for chat:, but no model and no address: name both"
    assert message in "\n".join(api.check(project_folder))
    with pytest.raises(NotSetUpError, match=message):
        api.count_missing_keys(project_folder, [{}])
    assert not api.count_missing_keys(project_folder, [{"model": "chat:x"}])


def test_an_argument_of_another_type_is_a_type_error(project_folder: Path):
    for call in (run, api.check):
        with pytest.raises(TypeError, match="query must be a str or None, not 3"):
            call(project_folder, query=3)
    with pytest.raises(TypeError, match="on_step must be callable or None, not 3"):
        run(project_folder, on_step=3)  # type: ignore[arg-type]
    assert not (project_folder / "agent-config/logs").exists()
    with pytest.raises(TypeError, match="select must be True or False, not 'src'"):
        rollup(project_folder, select="src")  # type: ignore[arg-type]


WRONG_SETTINGS = {
    "sandbox": ("bogus", "sandbox must be one of auto, off, guard, strict"),
    "on_rejected": ("never", "on_rejected must be one of retry, stop"),
    "max_repairs": ("1", "max_repairs must be a whole number: leave the quotes out"),
    "allow": ("src/**", 'allow must be a list of strings, such as ["src/**"]'),
    "protect": ([1], "protect must be a list of strings"),
    "max_cost": (-1, "max_cost must be more than 0"),
    "llm_timeout": (True, "llm_timeout must be a number of seconds"),
    "max_repair": (1, "there is no setting 'max_repair'; did you mean 'max_repairs'?"),
    "prices": ({"m": {"input": -1, "output": 1}}, "prices.m: input must be 0 or more"),
}


def test_a_run_refuses_what_the_command_line_refuses_all_at_once(project_folder: Path):
    model = record_answers(project_folder, "^^^ok.txt\nok\n^^^end\n")
    with pytest.raises(NotSetUpError) as caught:
        run(project_folder, model=model, **{name: value for name, (value, _) in WRONG_SETTINGS.items()})
    faults = [f"- {fault}" for _, fault in WRONG_SETTINGS.values()]
    assert str(caught.value).split("\n") == [f"{len(faults)} problems to solve:", *faults]
    assert not (project_folder / "agent-config/logs").exists()


def test_a_rollup_has_no_dry_run(project_folder: Path):
    before = (project_folder / "agent-config" / "codeRollup.txt").read_text()
    with pytest.raises(NotSetUpError, match="dry_run= does not keep rollup from writing"):
        rollup(project_folder, dry_run=True)
    assert (project_folder / "agent-config" / "codeRollup.txt").read_text() == before


def test_a_rollup_refuses_what_the_command_line_refuses_all_at_once(project_folder: Path):
    with pytest.raises(NotSetUpError) as caught:
        rollup(project_folder, "ok.txt", exclude="*.md", include=[1], max_cost="2", fitt=1)  # type: ignore[arg-type]
    assert str(caught.value).split("\n") == [
        'pathspecs must be a list of strings, such as ["ok.txt"]',
        'exclude must be a list of strings, such as ["*.md"]',
        "include must be a list of strings",
        "max_cost must be a number of US dollars: leave the quotes out",
        "there is no setting 'fitt'; code-commit run --help lists most",
    ]


def test_what_is_missing_is_told_in_words_of_python(project_folder: Path):
    (project_folder / "agent-config/codeRollup.txt").unlink()
    with pytest.raises(NotSetUpError, match="is missing: rollup='fresh' or code-commit rollup writes it"):
        run(project_folder, model="chat:m", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(NotSetUpError, match=r"^include=nosuch matches no file"):
        rollup(project_folder, include=["nosuch"])


def test_settings_may_be_lists_tuples_and_whole_numbers(project_folder: Path):
    model = record_answers(project_folder, "^^^ok.txt\nok\n^^^end\n")
    settings = {"allow": ["*"], "protect": ("docs/",), "llm_timeout": 9, "max_cost": 2, "prices": {"m": Price(1, 2)}}
    assert run(project_folder, model=model, **settings).exit_code == 0


def test_the_package_has_nothing_else():
    assert code_commit.__version__
    with pytest.raises(AttributeError, match="walk"):
        code_commit.walk  # noqa: B018 - the access is the test


@pytest.mark.parametrize("call", [run, rollup])
def test_a_folder_that_is_not_there_is_named(call, tmp_path: Path):
    with pytest.raises(
        NotSetUpError,
        match=f"the folder {tmp_path}/nowhere cannot be used: No such file or directory; name the project's folder",
    ):
        call(tmp_path / "nowhere")


def test_a_call_begins_once_whatever_the_provider_makes_of_it(project_folder: Path):
    """A background job that has its id is no new call, with a whole --llm-timeout before it."""
    key = project_folder / "agent-config/openai-key.txt"
    key.write_text("test-key-0123456789")
    key.chmod(0o600)
    events = []
    with FakeServer(answers=["^^^ok.txt\nok\n^^^end\n"]) as server:
        address = server.base_url("openai")
        run(project_folder, model="openai", base_url=address, on_step=lambda _, event: events.append(event))
    assert events.count("asking") == 1


@pytest.mark.slow
def test_the_supervisor_of_the_document(project_folder: Path, tmp_path: Path, run_code_commit: Run):
    """One task becomes green and is committed, one is done already, one stays red, one cannot begin."""
    document = (Path(__file__).parents[1] / "docs" / "python.md").read_text("utf-8")
    (script,) = re.findall(r"^```python\n(.*?)^```$", document, re.DOTALL | re.MULTILINE)
    assert len(script.splitlines()) <= 30
    projects = {name: tmp_path / name for name in ("done", "green", "red", "bare")}
    for name in ("done", "green", "red"):
        shutil.copytree(project_folder, projects[name], symlinks=True)
        if name == "done":
            (projects[name] / "ok.txt").write_text("ok\n")
            git(projects[name], "commit", "-qam", "Done.")
        answer = f"^^^ok.txt\n{'no' if name == 'red' else 'ok'}\n^^^end\n"
        set_up_as_init_does(projects[name], run_code_commit, *[answer] * 3)
    projects["bare"].mkdir()
    (tmp_path / "tasks.json").write_text(json.dumps({str(root): "Say ok." for root in projects.values()}))
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=180, check=False
    )
    assert (done.returncode, done.stderr) == (1, "")
    *problems, of_done, of_green, of_red = done.stdout.splitlines()
    assert any(line.startswith(f"{projects['bare']}: build.sh") for line in problems), problems
    assert of_done == f"{projects['done']}: success, $0.00"
    assert of_green == f"{projects['green']}: success, $0.00"
    assert of_red == f"{projects['red']}: build_failed, $0.00"
    last = [git(projects[name], "log", "-1", "--format=%s").strip() for name in ("done", "green")]
    assert last == ["Done.", "Say ok."]
    assert git(projects["green"], "status", "--short") == ""
    assert "The build passes" in (tmp_path / "green.html").read_text()
    assert not (tmp_path / "bare.html").exists()


@pytest.mark.parametrize("answer", ["^^^ok.txt\nno\n^^^end\n", "^^^cannot\nNobody can.\n^^^end\n", "no block"])
def test_the_example_of_on_step(answer, project_folder: Path, run_code_commit: Run, capfd):
    """The document's very words, in a project as `init` writes it: the run fails, is shown, and undone if it changed anything."""
    document = (Path(__file__).parents[1] / "docs" / "python.md").read_text("utf-8")
    (script,) = re.findall(r"^```py\n(.*?)^```$", document, re.DOTALL | re.MULTILINE)
    set_up_as_init_does(project_folder, run_code_commit, *[answer] * 4)
    exec(script.replace('"project"', repr(str(project_folder))), {"api": api})
    printed, complaints = capfd.readouterr()
    assert "attempt 0: build.sh ended with 1\n" in printed
    if "ok.txt" in answer:
        assert "attempt 1: ok.txt\n" in printed
        assert "attempt 1: build.sh ended with 1\n" in printed
        assert "+no\n" in printed
    assert (complaints, (project_folder / "ok.txt").read_text()) == ("", "not yet\n")


def test_what_a_supervisor_reads_of_earlier_runs(project_folder: Path):
    record = run(project_folder, model=record_answers(project_folder, "^^^ok.txt\nok\n^^^end\n"))
    (folder,) = api.list_runs(project_folder)
    assert (api.read_record(folder).run, api.read_record(folder).totals) == (record.run, record.totals)
    assert f'href="./{record.log_dir}/1-response.txt"' in api.render_page(record, project_folder).decode()
    (folder / "run.json").write_text("{")
    with pytest.raises(NotSetUpError, match=f"the run {record.run}: its run.json is damaged"):
        api.read_record(folder)


def test_a_check_returns_what_a_run_would_raise(project_folder: Path):
    model = record_answers(project_folder, "^^^ok.txt\nok\n^^^end\n")
    assert api.check(project_folder, model=model, rollup="fresh") == []
    problems = api.check(project_folder, model="replay:nowhere", max_repair=1)
    with pytest.raises(NotSetUpError) as raised:
        run(project_folder, model="replay:nowhere", max_repair=1)
    assert problems
    assert all(problem in str(raised.value) for problem in problems)
    assert not api.list_runs(project_folder)


def test_a_folder_that_is_not_there_is_told_like_any_other_problem(tmp_path):
    (problem,) = api.check(tmp_path / "none")
    assert "none cannot be used" in problem
    assert api.list_runs(tmp_path / "none") == []
    with pytest.raises(TypeError, match="settings must be a mapping, not 3"):
        api.check_settings(3)


@pytest.mark.parametrize("name", ["model", "select_model", "fallback_model"])
def test_a_project_uses_the_providers_of_all_the_models_that_it_names(name, project_folder, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-of-somebody-else")
    (project_folder / "agent-config/config.toml").write_text(
        'model = "replay:none"\n' * (name != "model") + f'{name} = "anthropic:x"\n'
    )
    uses = [api.uses_provider(project_folder, provider) for provider in ("anthropic", "openai", "gemini")]
    assert uses == [True, False, False]
