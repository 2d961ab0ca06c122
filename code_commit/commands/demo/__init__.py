"""`code-commit demo`: the whole loop on a sample project with a recorded LLM, a failing build and its repair."""

import shlex
import subprocess
import tempfile
from importlib import resources
from pathlib import Path

from code_commit.check import RunInputs
from code_commit.commands import NoArguments
from code_commit.commands.output import print_text
from code_commit.commands.run import run_main_job
from code_commit.errors import EXIT_BUILD_FAILED, EXIT_SUCCESS
from code_commit.git import ask_git, git_environment, require_git
from code_commit.project import AGENT_CONFIG, Project, find_project
from code_commit.redaction import Redactor
from code_commit.runs.progress import Progress

DESCRIPTION = """\
Runs the whole loop on a sample project in a temporary folder, with recorded
answers: a first answer, a build that fails, a repair. It needs no key and no
network, and does not touch your files."""

EXAMPLES = """\
code-commit demo"""

_RECORDED = f"{AGENT_CONFIG}/recorded"


def run(_: NoArguments) -> int:
    project = _make_project()
    progress = Progress(Redactor([]))
    progress.say(f"A sample project is in {project.root}. The task:\n")
    progress.say("".join(f"  {line}\n" for line in project.query_file.read_text("utf-8").splitlines()))
    record = run_main_job(project, {"model": f"replay:{_RECORDED}"}, progress, RunInputs(environment={}))
    diff = ask_git(["diff", "--no-ext-diff"], project.root).stdout.decode()
    print_text(
        f"$ cd {project.root}\n$ git diff\n{diff}\n"
        f"The prompts, responses, changes and build outputs of both attempts:\n  {project.root / record.log_dir}\n"
        f"Nothing else needs this folder. To delete it:\n  rm -r {shlex.quote(str(project.root))}"
    )
    return EXIT_SUCCESS if record.exit_code == EXIT_SUCCESS else EXIT_BUILD_FAILED


def _make_project() -> Project:
    """Return a new sample project in a temporary folder, committed to git."""
    require_git(Path(tempfile.gettempdir()))
    root = Path(tempfile.mkdtemp(prefix="code-commit-demo-"))
    source = resources.files(__name__)
    config = root / AGENT_CONFIG
    (config / "recorded").mkdir(mode=0o700, parents=True)
    config.chmod(0o700)
    files = {entry.name: entry.read_text("utf-8") for entry in (source / "project").iterdir()}
    for name, text in files.items():
        (root / name).write_text(text, "utf-8")
    (root / "build.sh").chmod(0o755)
    (root / ".gitignore").write_text(f"/{AGENT_CONFIG}\n")
    (config / "query.txt").write_text((source / "query.txt").read_text("utf-8"), "utf-8")
    rollup = "\n".join(f"--- {name} ---\n{text}" for name, text in sorted(files.items()))
    (config / "codeRollup.txt").write_text(rollup, "utf-8")
    for entry in (source / "responses").iterdir():
        (config / "recorded" / entry.name).write_text(entry.read_text("utf-8"), "utf-8")
    _commit(root)
    return find_project(root)


def _commit(root: Path) -> None:
    """Make the sample's first commit, in a repository of our own making."""
    author = ["-c", "user.name=code-commit demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgSign=false"]
    hooks = ["-c", "core.hooksPath=/dev/null", "-c", "init.templateDir="]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "The sample project"]):
        words = [require_git(root), *author, *hooks, *arguments]
        subprocess.run(words, cwd=root, env=git_environment(root), check=True, capture_output=True)
