"""Nothing that lies inside the project runs outside the sandbox: what an answer or a build put there, and honest shapes."""

import os
import shutil
import site
import subprocess
import sys
from pathlib import Path

import pytest
from command import Run, chess_board, git, recorded

import code_commit
from code_commit.llm.keys import KEY_VARIABLES
from code_commit.project import find_project
from code_commit.trust import find_program

PASSES, FAILS = "^^^ok.txt\nok\n^^^end\n", "^^^ok.txt\nno\n^^^end\n"
REAL_PATH = os.environ["PATH"]
TOOL = Path(code_commit.__file__).parents[1]


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    """Outside the project: what runs that must not makes this file."""
    return tmp_path / "ran"


def program(ran: Path, name: str = "git") -> str:
    return f'#!/bin/sh\necho "$0 $*" >>{ran}\nexec {find_program(name, "/dev/null")} "$@"\n'


@pytest.mark.parametrize("place", ["bin", "./bin", "", "{root}/bin", "{root}/../link/bin", "{root}/../to-bin"])
def test_no_program_that_an_answer_wrote_is_run(place, project_folder: Path, ran: Path, run_code_commit: Run):
    (project_folder.parent / "link").symlink_to("project")
    (project_folder.parent / "to-bin").symlink_to("project/bin")
    folder = "bin/" if place else ""
    answer = "".join(f"^^^{folder}{name}\n{program(ran, name)}^^^end\n" for name in ("git", "true", "nsenter", "sh"))
    options = recorded(project_folder, answer + FAILS, answer + FAILS, PASSES)  # `sh` is taken for a language first
    path = f"{place.format(root=project_folder)}:{REAL_PATH}"
    for _ in range(2):
        done = run_code_commit(project_folder, *options, "--sandbox", "off", env={"PATH": path})
        assert done.returncode == 0, done.stderr
    assert os.access(project_folder / f"{folder}git", os.X_OK)
    assert not ran.exists(), ran.read_text()


@pytest.mark.parametrize("mode", ["off", "guard", "strict"])
def test_no_program_that_a_build_wrote_is_run(mode, project_folder: Path, ran: Path, run_code_commit: Run, needs_bwrap):
    """It lies in the work tree, above the project, and is reached through a folder outside."""
    root = project_folder / "inner"
    (root / "agent-config").mkdir(parents=True)
    for name in ("build.sh", ".gitignore", "ok.txt", "agent-config/query.txt", "agent-config/codeRollup.txt"):
        (project_folder / name).rename(root / name)
    outside = project_folder.parent / "programs"
    outside.mkdir()
    wanted = root / "bin" if mode == "strict" else project_folder / "bin"
    (outside / "git").symlink_to(wanted / "git")
    script = (
        f"mkdir -p {wanted}\ncat >{wanted}/git <<'!'\n{program(ran)}!\nchmod +x {wanted}/git\ngrep -q '^ok' ok.txt\n"
    )
    (root / "build.sh").write_text(f"#!/bin/sh\n{script}")
    done = run_code_commit(
        root, *recorded(root, FAILS, PASSES), "--sandbox", mode, env={"PATH": f"{outside}:{wanted}:{REAL_PATH}"}
    )
    assert (done.returncode, (wanted / "git").exists()) == (0, True), done.stderr
    assert not ran.exists(), ran.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["", ".", "src", "{root}/src", "{root}/../link"])
def test_no_module_that_an_answer_wrote_is_imported(setting, project_folder: Path, ran: Path, run_code_commit: Run):
    """`python -m code_commit` alone puts the current folder in front."""
    (project_folder.parent / "link").symlink_to("project")
    folder = "src/" if "src" in setting else ""
    names = {*sys.stdlib_module_names, "httpx", "pydantic", "jinja2", "rich", "pathspec", "genai_prices"} - {
        "antigravity"
    }
    spy = f"open({str(ran)!r}, 'a').write(__name__ + chr(10))\n"
    answer = "".join(f"^^^{folder}{name}.py\n{spy}^^^end\n" for name in sorted(names) if "aux" not in name)
    options = [*recorded(project_folder, answer + FAILS, PASSES), "--sandbox", "off"]
    env = {"PYTHONPATH": setting.format(root=project_folder)} if setting else {}
    done = run_code_commit(project_folder, *options, env=env, forked=False)
    assert done.returncode == 0, done.stderr
    assert not ran.exists(), ran.read_text()
    for name in python_has_loaded():
        (project_folder / f"{folder}{name}.py").unlink(missing_ok=True)
    assert run_code_commit(project_folder, *options, env=env, forked=False).returncode == 0
    assert not ran.exists(), ran.read_text()


def python_has_loaded() -> set[str]:
    """Return what Python itself imports from the current folder before it comes to anything of ours."""
    script = "import runpy, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_python_that_calls_the_tool_keeps_its_own_path(project_folder: Path):
    script = "import sys; sys.path.insert(0, ''); before = list(sys.path); import code_commit; code_commit.run"
    script += "; sys.exit(sys.path != before)"
    assert subprocess.run([sys.executable, "-c", script], cwd=project_folder, check=False).returncode == 0


@pytest.mark.parametrize(("setting", "kept"), [("x", "None"), ("{root}/x", "None"), ("/no/such", "/no/such")])
def test_no_compiled_code_is_loaded_from_the_project(setting, kept, project_folder: Path):
    script = "import sys; from code_commit.trust import clean_import_path as c; c(); print(sys.pycache_prefix)"
    env = os.environ | {"PYTHONPYCACHEPREFIX": setting.format(root=project_folder), "PYTHONDONTWRITEBYTECODE": "1"}
    words = [sys.executable, "-c", script]
    done = subprocess.run(words, cwd=project_folder, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == kept


@pytest.mark.parametrize("program", ["git", "bwrap"])
def test_no_program_gets_a_key_or_a_way_into_the_project(
    program, project_folder: Path, run_code_commit: Run, request: pytest.FixtureRequest
):
    if program == "bwrap":
        request.getfixturevalue("needs_bwrap")
    outside = project_folder.parent / "programs"
    outside.mkdir()
    seen = project_folder.parent / "seen"
    (outside / program).write_text(f'#!/bin/sh\nenv >>{seen}\nexec {find_program(program, "/dev/null")} "$@"\n')
    (outside / program).chmod(0o755)
    keys = {name: f"sk-secret-of-{name.lower()}" for name in KEY_VARIABLES.values()}
    paths = dict.fromkeys(
        ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONPATH"), f"lib:{project_folder}/lib:/no/such/lib"
    )
    env = keys | paths | {"PATH": f"{outside}:{project_folder}/bin:{REAL_PATH}", "CODE_COMMIT_MAX_COST": "7.25"}
    sandbox = "guard" if program == "bwrap" else "off"
    done = run_code_commit(project_folder, *recorded(project_folder, PASSES), "--sandbox", sandbox, env=env)
    assert done.returncode == 0, done.stderr
    lines = set(seen.read_text().splitlines())
    assert {
        f"PATH={outside}:{REAL_PATH}",
        "LD_LIBRARY_PATH=/no/such/lib",
        "PYTHONPATH=/no/such/lib",
        f"HOME={os.environ['HOME']}",
    } <= lines
    assert not [line for line in lines if "sk-secret" in line or "7.25" in line or f"{project_folder}/" in line]


def damaged(root: Path, script: str, run_code_commit: Run) -> str:
    """Return the complaint about a build that ran the script, without a sandbox, and passed."""
    (root / "build.sh").write_text(f"#!/bin/sh\n{script}\n")
    done = run_code_commit(root, *recorded(root, PASSES), "--sandbox", "off")
    assert done.returncode == 5, done.stderr
    return done.stderr


def make_submodule(root: Path, folder: str = "sub") -> Path:
    """Add a submodule; return where its repository is."""
    origin = root.parent / "origin"
    origin.mkdir()
    git(origin, "init", "-q")
    (origin / "a.txt").write_text("a\n")
    git(origin, "add", "-A")
    git(origin, "commit", "-qm", "a")
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(origin), folder)
    git(root, "commit", "-qam", "submodule")
    return root / ".git" / "modules" / folder


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("cp -r .git/modules/sub target/m; echo 'gitdir: ../target/m' >sub/.git", "sub/.git (changed"),
        ("rm sub/.git; cp -r .git/modules/sub sub/.git", "sub/.git (changed"),
        ("git -C sub config core.fsmonitor ./x", ".git/modules/sub/config (changed"),
        ("touch .git/modules/sub/hooks/post-checkout", ".git/modules/sub/hooks/post-checkout (new"),
        ("echo '* -diff' >.git/modules/sub/info/attributes", ".git/modules/sub/info/attributes (new"),
        ("cp -r .git target/g; echo ../target/g >.git/commondir", ".git/commondir (new"),
        ("echo '* -diff' >hidden", "hidden (new"),
        ("echo x >>team/git.inc", "team/git.inc (changed"),
        ("mkdir deep; echo x >deep/er.inc", "deep/er.inc (new"),
    ],
)
def test_a_build_cannot_change_what_configures_git(script, told, project_folder: Path, run_code_commit: Run):
    make_submodule(project_folder)
    git(project_folder, "config", "core.attributesFile", "hidden")
    git(project_folder, "config", "include.path", "../team/git.inc")
    (project_folder / "target").mkdir()
    (project_folder / "team").mkdir()
    (project_folder / "team" / "git.inc").write_text("[include]\n\tpath = ../deep/er.inc\n")
    assert told in damaged(project_folder, script, run_code_commit)


@pytest.mark.parametrize("mode", ["off", "guard", "strict"])
@pytest.mark.parametrize("is_below", [True, False])
def test_a_build_cannot_put_a_repository_in_the_place_of_the_project_s(
    mode, is_below, project_folder: Path, ran: Path, run_code_commit: Run, needs_bwrap
):
    """Git would be configured by it, in our questions as in the user's. `is_below`: the project is a folder of one."""
    root = project_folder
    if is_below:
        root = project_folder / "inner"
        (root / "agent-config").mkdir(parents=True)
        for name in ("build.sh", ".gitignore", "ok.txt", "agent-config/query.txt", "agent-config/codeRollup.txt"):
            (project_folder / name).rename(root / name)
    else:
        shutil.rmtree(root / ".git")
    made = "git init -q --bare x; mv x/* .; git config core.bare false; git config core.worktree ."
    for script, told in (("git init -q", ".git (new"), (made, "HEAD (new")):
        (root / "build.sh").write_text(f"#!/bin/sh\n{script}\ngit config core.fsmonitor 'touch {ran}'\n")
        done = run_code_commit(root, *recorded(root, PASSES), "--sandbox", mode)
        assert (done.returncode, told in done.stderr) == (5, True), done.stderr
        if is_below:
            git(root, "status")
        assert not ran.exists()
        for name in ("refs", "objects", "hooks", "info", "branches"):
            shutil.rmtree(root / name, ignore_errors=True)
    answer = "^^^HEAD\nref: refs/heads/main\n^^^end\n"
    done = run_code_commit(root, *recorded(root, answer), "--max-repairs", "0", "--verbose")
    assert (done.returncode, "would make the folder a git repository" in done.stderr) == (4, True), done.stderr


EVIL = """printf '[core]\\n repositoryformatversion = 0\\n bare = false\\n worktree = %s\\n' "$PWD" > FOLDER/config
printf '[filter "x"]\\n clean = "touch RAN; cat"\\n' >> FOLDER/config
echo '* filter=x' > .gitattributes; touch -d 2001-01-01 *.txt
"""


LAID_DOWN = ["cp -r .git/HEAD .git/objects .git/refs .git/index .; FOLDER=.", "cp -r .git ../.git; FOLDER=../.git"]
BROKEN = ["echo x > .git/HEAD", "chmod 0 .git/objects", ":"]


@pytest.mark.parametrize(("laid_down", "broken", "mode"), chess_board(LAID_DOWN, BROKEN, ["off", "guard"]))
def test_git_is_asked_about_no_other_repository_than_before(
    laid_down: str, broken: str, mode: str, project_folder: Path, ran: Path, run_code_commit: Run, request
):
    """Where its own is broken git takes the next one that it finds, the root itself or a folder above it."""
    if mode != "off":
        request.getfixturevalue("needs_bwrap")
    evil = EVIL.replace("FOLDER", "$FOLDER").replace("RAN", str(ran))
    (project_folder / "build.sh").write_text(f"#!/bin/sh\n{laid_down}\n{evil}{broken}\n")
    git(project_folder, "commit", "-qam", "build.sh")
    done = run_code_commit(project_folder, *recorded(project_folder, PASSES), "--sandbox", mode)
    assert not ran.exists()
    assert done.returncode == (0 if broken == ":" else 5), done.stderr
    run_code_commit(project_folder, "check")
    git(project_folder, "status")
    assert not ran.exists()


def test_git_is_not_asked_when_another_folder_took_the_place_of_the_project(
    tmp_path: Path, project_folder: Path, ran: Path, run_code_commit: Run
):
    root = tmp_path / "above" / "project"
    root.parent.mkdir()
    project_folder.rename(root)
    evil = EVIL.replace("FOLDER", ".git").replace("RAN", str(ran))
    swap = f"cd {tmp_path}; cp -r above other; mv above away; mv other above; cd above/project"
    forged = 'mkdir -p "agent-config/logs/$CODE_COMMIT_RUN"; : > "agent-config/logs/$CODE_COMMIT_RUN/1-build.txt"'
    (root / "build.sh").write_text(f"#!/bin/sh\n{swap}\n{evil}{forged}\n")
    done = run_code_commit(root, *recorded(root, PASSES), "--sandbox", "off")
    assert (done.returncode, "moved or removed, and cannot be put back" in done.stderr) == (5, True), done.stderr
    assert not ran.exists()


def test_no_question_of_ours_looks_into_a_submodule(project_folder: Path, ran: Path, run_code_commit: Run):
    repository = make_submodule(project_folder)
    (project_folder / "spy").write_text(program(ran, "true"))
    (project_folder / "spy").chmod(0o755)
    for setting in ("core.fsmonitor", "filter.x.clean"):
        git(project_folder / "sub", "config", setting, str(project_folder / "spy"))
    (repository / "info" / "attributes").write_text("* filter=x\n")
    (project_folder / "sub" / "a.txt").write_text("b\n")
    done = run_code_commit(project_folder, *recorded(project_folder, FAILS, PASSES), "--sandbox", "off")
    assert done.returncode == 0, done.stderr
    assert run_code_commit(project_folder, "rollup").returncode == 0
    assert not ran.exists()
    git(project_folder, "status")
    assert ran.exists()  # the user's own does


@pytest.mark.parametrize("required", ["true", "false"])
def test_git_can_be_asked_without_its_filters(required, project_folder: Path, ran: Path):
    """All of them run what is in the project."""
    (project_folder / "spy").write_text(f"#!/bin/sh\necho >>{ran}\ncat\n")
    (project_folder / "spy").chmod(0o755)
    for number, name in enumerate(("fmt", "a.B", "x")):
        git(project_folder, "config", f"filter.{name}.clean", "./spy")
        git(project_folder, "config", f"filter.{name}.required", required)
        (project_folder / f"{number}.txt").write_text("text\n")
    (project_folder / ".gitattributes").write_text('0.txt filter=fmt\n"1.txt" filter=a.B\n2.txt filter=x\n')
    git(project_folder, "config", "filter.x.process", "./spy")
    project = find_project(project_folder)
    git(project_folder, "add", "0.txt", "1.txt")
    ran.unlink()
    for name in ("0.txt", "1.txt"):
        (project_folder / name).write_text("TEXT\n")
    answer = project.git.ask_unfiltered(["status", "--porcelain"])
    assert (answer.returncode, b"AM 0.txt" in answer.stdout) == (0, True), answer.stderr
    assert not ran.exists()


def in_own_environment(root: Path) -> tuple[dict[str, str], str]:
    """The tool runs by the Python of the project's .venv."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", root / ".venv"], check=True)
    (site_packages,) = (root / ".venv" / "lib").glob("python*/site-packages")
    (site_packages / "others.pth").write_text("\n".join([*site.getsitepackages(), str(TOOL)]))
    return {}, ".venv"


def in_a_folder_with_the_packages(root: Path) -> tuple[dict[str, str], str]:
    for name in ("code_commit", "system_prompts"):
        shutil.copytree(TOOL / name, root / "vendor" / name)
    return {"PYTHONPATH": "vendor"}, "vendor/code_commit"


@pytest.mark.slow
@pytest.mark.parametrize("install", [in_own_environment, in_a_folder_with_the_packages])
def test_what_the_tool_runs_from_is_protected(install, project_folder: Path, needs_bwrap):
    env, folder = install(project_folder)
    python = project_folder / ".venv" / "bin" / "python"
    words = [python if python.exists() else sys.executable, "-m", "code_commit", "--max-repairs", "0"]
    script = f"touch {folder}/new 2>/dev/null && exit 1\ncat ok.txt\n"
    (project_folder / "build.sh").write_text(f"#!/bin/sh\n{script}")
    for answer, sandbox, code in (
        (f"^^^{folder}/lib/new.py\n\n^^^end\n", "guard", 4),
        (PASSES, "guard", 0),
        (PASSES, "strict", 0),
        (PASSES, "off", 5),
        (PASSES, "off", 0),
    ):
        if (sandbox, code) == ("off", 0):  # what Python compiles does not count
            script = f"mkdir -p {folder}/__pycache__; touch {folder}/__pycache__/x.pyc\n"
            (project_folder / "build.sh").write_text(f"#!/bin/sh\n{script}")
        options = [*recorded(project_folder, answer), "--sandbox", sandbox, "--verbose"]
        done = subprocess.run(
            [*words, *options], cwd=project_folder, env=os.environ | env, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stderr
        assert [folder in line for line in done.stderr.splitlines() if "pipx or uv tool" in line] == [True]
        assert code != 4 or "the folder that code-commit itself runs from" in done.stderr
        assert code != 5 or f"{folder}/new (of code-commit itself, changed, and cannot be put back)" in done.stderr


@pytest.mark.parametrize("mode", ["guard", "strict"])
def test_bubblewrap_loads_no_library_of_the_project(mode, project_folder: Path, run_code_commit: Run, needs_bwrap):
    """The build itself gets the folders of the user's environment; a library that is no library would end it here."""
    (project_folder / "lib").mkdir()
    (project_folder / "lib" / "libcap.so.2").write_text("not a library\n")
    (project_folder / "build.sh").write_text('#!/bin/sh\necho "$LD_LIBRARY_PATH $PATH" >seen\ncat ok.txt\n')
    env = {"LD_LIBRARY_PATH": f"{project_folder}/lib:lib", "PATH": f"bin:{REAL_PATH}"}
    options = [*recorded(project_folder, PASSES), "--sandbox", mode]
    done = run_code_commit(project_folder, *options, env=env)
    assert done.returncode == 0, done.stderr
    assert (project_folder / "seen").read_text() == f"{env['LD_LIBRARY_PATH']} {env['PATH']}\n"


def test_no_browser_of_the_project_is_started(project_folder: Path, ran: Path, run_code_commit: Run):
    assert run_code_commit(project_folder, *recorded(project_folder, PASSES), "--sandbox", "off").returncode == 0
    (project_folder / "browse").write_text(f"#!/bin/sh\necho >{ran}\n")
    (project_folder / "browse").chmod(0o755)
    env = {"BROWSER": "browse %s", "PATH": f"{project_folder}:{REAL_PATH}"}
    run_code_commit(project_folder, "log", "--open", env=env)
    assert not ran.exists()
