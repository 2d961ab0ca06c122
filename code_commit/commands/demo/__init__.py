"""`code-commit demo`: a sample project in a temporary folder, a recorded LLM, the whole loop: no key, no network.

The first recorded response breaks the build, the second repairs it; everything between is the real thing.
"""

import subprocess
import tempfile
from importlib import resources
from pathlib import Path

from code_commit.commands.run import run_main_job
from code_commit.git import ask_git, find_git
from code_commit.progress import Progress
from code_commit.project import AGENT_CONFIG, Project, find_project
from code_commit.run_record import RunRecord

RECORDED = f"{AGENT_CONFIG}/recorded"


def make_demo_project() -> Project:
    """Write the sample project into a new temporary folder, committed to git where there is one."""
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
    if find_git():
        _commit(root)
    return find_project(root)


def run_demo(project: Project, progress: Progress) -> RunRecord:
    """Run the main job on the sample project with the recorded LLM."""
    query = project.query_file.read_text("utf-8")
    progress.say(f"A sample project is in {project.root}. The task:\n")
    progress.say("".join(f"  {line}\n" for line in query.splitlines()))
    return run_main_job(project, {"model": f"replay:{RECORDED}"}, progress, {})


def demo_result(project: Project, record: RunRecord) -> str:
    """Return what the run changed, as `git diff` shows it, and where the log is."""
    diff = ask_git(["diff"], project.root).stdout.decode() if project.git else ""
    return (
        f"$ cd {project.root}\n$ git diff\n{diff}\n"
        f"The prompts, responses, changes and build outputs of both attempts:\n  {project.root / record.log_dir}"
    )


def _commit(root: Path) -> None:
    """Make the sample's first commit. This is the one place that writes to a repository: one of its own making."""
    author = ["-c", "user.name=code-commit demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgSign=false"]
    hooks = ["-c", "core.hooksPath=/dev/null", "-c", "init.templateDir="]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "The sample project"]):
        subprocess.run(["git", *author, *hooks, *arguments], cwd=root, check=True, capture_output=True)
