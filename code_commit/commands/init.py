"""`code-commit init`: write what a project lacks to be worked on; change no file that exists but .gitignore."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated

from code_commit.check.plan import has_ignore_line
from code_commit.codebase.select import find_environments
from code_commit.commands.build_scripts import build_script_for, leaves_of
from code_commit.commands.output import current_folder, print_text
from code_commit.errors import EXIT_SUCCESS, NotSetUpError
from code_commit.files import read_regular_file
from code_commit.git import UnansweredError
from code_commit.llm.keys import key_of, load_keys
from code_commit.llm.local import find_server
from code_commit.llm.models import choose_model
from code_commit.llm.vendor import LlmConfig
from code_commit.project import (
    AGENT_CONFIG,
    BUILD_SCRIPT,
    CONFIG_FILE,
    Project,
    find_project,
    find_user_folder,
    place_of_user,
    shown_path,
)
from code_commit.sources import load_settings
from code_commit.terminal import shown, terminal_width, wrapped
from code_commit.verify import ignored_paths

DESCRIPTION = """\
Creates what a run needs and the project lacks. agent-config/ gets a commented
config.toml, an empty query.txt and a supervisor.sh. build.sh fits what init
finds (pyproject.toml, package.json, Cargo.toml, go.mod, Makefile ...), and says
which parts it leaves out or cannot test. .gitignore gets the line
/agent-config, and lines for installed packages and for what the build creates
(.venv, target). No other existing file is changed. With --user, init instead
writes your own config.toml for all projects, in ~/.config/code-commit
($XDG_CONFIG_HOME)."""

EXAMPLES = """\
code-commit init
code-commit init --user"""
_NEXT_STEPS = f"""\
Next:
  1. Check that {BUILD_SCRIPT} builds and tests the project; commit it and .gitignore.
  2. {{}}
  3. code-commit check -m 'What to do.'
  4. code-commit -m 'What to do.'
Or write the task into {AGENT_CONFIG}/query.txt, then:
code-commit rollup; code-commit check; code-commit"""
_GET_KEY = f"""\
Put an API key into {AGENT_CONFIG}/gemini-key.txt, openai-key.txt or
     anthropic-key.txt, and chmod 600 it. To use any other server, including
     your own: set model = "chat:NAME" and base_url in {AGENT_CONFIG}/config.toml.
     If that server requires a key, put the key into chat-key.txt."""
_NAME_MODEL = """\
The key from {} is for a server that you name: add
     --model chat:NAME --base-url URL to the next command."""
_USERS_OWN = """\
# Your own settings of code-commit, for all projects. Any setting may be set
# here (code-commit init writes a list of them into a project's agent-config/);
# an option, a variable and the project's config.toml come first. Patterns of
# protect add to the project's, tables are merged by their keys.
#
# API keys may be put beside this file: gemini-key.txt, openai-key.txt,
# anthropic-key.txt, chat-key.txt (chmod 600 them). A key of a project, or of a
# variable, comes first.

# model = "openai:gpt-6.2-sol"
# max_cost = 2.0

# Only here, since they run a program or use a secret: a program that prints the
# key, a client certificate, headers from a variable or a file. All of them are
# for the model and the base_url that are set here.
# key_command = ["gcloud", "auth", "print-access-token"]
# client_cert = "~/.certs/me.pem"
# client_key = "~/.certs/me.key"
# [headers]
# X-Token = {env = "GATEWAY_TOKEN"}
"""
_PART = "Runs here see and change only this folder, not the rest of the repository {}."
_IGNORED = f"git ignores {BUILD_SCRIPT}: add it with git add -f {BUILD_SCRIPT}"
_NO_REPOSITORY = "This is not a git repository: git init makes one, to show what changed."


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """Whose settings to write: the project's, or the user's own."""

    user: Annotated[bool, "", "write your own settings for all projects"] = False


def run(arguments: Arguments) -> int:
    if arguments.user:
        return _write_users_own()
    project = find_project()
    try:
        written = [*add_ignored(project), *_write_agent_config(project), *_write_build_script(project)]
        written += _ignore_environments(project)
    except NotADirectoryError as error:
        raise NotSetUpError(f"{AGENT_CONFIG} is not a folder: move it away, then run init again") from error
    except OSError as error:
        where = shown(str(error.filename or project.root))
        raise NotSetUpError(f"{where} cannot be written: {error.strerror}; make it writable for you") from error
    step, server = _find_llm(project)
    if written:
        _print_lines(written)
        print_text("\n".join([*_notes(project), _NEXT_STEPS.format(step)]))
    else:
        print_text("Nothing was missing, nothing was written.\ncode-commit check says what is left to do.")
    if server:
        print_text(f"Or without a key:\n{server}")
    return EXIT_SUCCESS


def _print_lines(lines: Sequence[str]) -> None:
    for line in lines:
        print_text("\n".join(wrapped(line, terminal_width() or 80)))


def _write_users_own() -> int:
    """Write the user's own config.toml if it is missing. Raises NotSetUpError."""
    folder, project = place_of_user(), current_folder()
    if folder is None:
        raise NotSetUpError("there is no home folder: set HOME, or $XDG_CONFIG_HOME, to an absolute path")
    file = folder / CONFIG_FILE
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as config:
            config.write(_USERS_OWN)
    except FileExistsError:
        _print_lines([f"{shown_path(file)} exists already; nothing was written."])
    except OSError as error:
        raise NotSetUpError(f"{shown_path(file)} cannot be written: {error.strerror}; make it writable") from error
    else:
        _print_lines([f"wrote {shown_path(file)}: your own settings for all projects; put your keys beside it"])
    _print_lines(find_user_folder(project).warnings)
    return EXIT_SUCCESS


def _notes(project: Project) -> list[str]:
    """Return what should be known of the folder: no repository, or only a part of one."""
    if not project.git:
        return [_NO_REPOSITORY]
    is_part = project.git.work_tree != project.root
    return [_PART.format(shown(str(project.git.work_tree)))] if is_part else []


def _find_llm(project: Project) -> tuple[str, str]:
    """Return the next step towards an LLM, and where no key or model is there how to use a server of this machine."""
    try:
        keys, settings = load_keys(project), load_settings(project, {})
        if settings.model or set(keys) - {"chat"}:
            choice = choose_model(settings.model, keys, keys.unfit)
            key = key_of(LlmConfig(choice, None, settings), keys, project.root)
            absent = (
                "which needs no key"
                if choice.provider in ("command", "replay")
                else "without a key; the server may require one"
            )
            return f"The LLM is set up: {choice},\n     {f'with the key from {key.source}' if key else absent}.", ""
    except NotSetUpError:  # the run says it
        return _GET_KEY, ""
    if "chat" in keys:
        return _NAME_MODEL.format(keys["chat"].source), ""
    return _GET_KEY, find_server()


def _example(name: str) -> Traversable:
    """Return an example as the wheel carries it, or as it stands in a checkout."""
    packaged = resources.files("code_commit") / name
    return packaged if packaged.is_dir() or packaged.is_file() else Path(__file__).parents[2] / name


def _write_agent_config(project: Project) -> list[str]:
    written = []
    if not project.agent_config.exists():
        project.agent_config.mkdir(mode=0o700)
        written.append(f"wrote {AGENT_CONFIG}/ (mode 700)")
    for source in sorted(_example("agent-config.example").iterdir(), key=lambda entry: entry.name):
        target = project.agent_config / source.name
        if not target.exists() and not target.is_symlink():
            content = source.read_bytes()
            target.write_bytes(content)
            if content.startswith(b"#!"):
                target.chmod(0o755)
            written.append(f"wrote {AGENT_CONFIG}/{source.name}")
    return written


def _write_build_script(project: Project) -> list[str]:
    if project.build_script.exists() or project.build_script.is_symlink():
        return []
    found = build_script_for(project.root)
    script = found.text.encode() if found else _example("build.sh.example").read_bytes()
    with project.build_script.open("xb") as file:
        file.write(script)
    project.build_script.chmod(0o755)
    ignored = [_IGNORED] if project.git and ignored_paths(project, [BUILD_SCRIPT]) else []
    notes = [*found.notes, *ignored] if found else ignored
    if found and found.titles:
        return [f"wrote {BUILD_SCRIPT} for {', '.join(found.titles)}: read it and run it once", *notes]
    return [f"wrote {BUILD_SCRIPT}: put your build and test commands into it", *notes]


def _ignore_environments(project: Project) -> list[str]:
    """Let git ignore installed packages, those that are there, and what build.sh makes where git tracks nothing."""
    script = read_regular_file(project.build_script).decode("utf-8", "replace") if project.build_script.exists() else ""
    tracked: set[str] = set()
    with suppress(UnansweredError):
        tracked.update(part for path in project.index().files for part in path.split("/"))
    patterns = {name.rstrip("/"): name for name in leaves_of(script) if name.rstrip("/") not in tracked}
    for folder in sorted(entry.name for entry in project.root.iterdir() if entry.is_dir() and not entry.is_symlink()):
        if find_environments(project.root, [f"{folder}/x"]) and shown(folder) == folder:
            patterns.setdefault(folder, f"/{folder}/")
    paths = {name: f"{name}/x" if pattern.endswith("/") else name for name, pattern in patterns.items()}
    ignored = ignored_paths(project, list(paths.values()))
    missing = [pattern for name, pattern in patterns.items() if paths[name] not in ignored]
    return [line for pattern in missing for line in add_ignored(project, pattern)]


def add_ignored(project: Project, pattern: str = f"/{AGENT_CONFIG}") -> list[str]:
    """Add a line to .gitignore if it is missing; return what was done. Raises NotSetUpError and OSError."""
    path = project.root / ".gitignore"
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise NotSetUpError(".gitignore is not a regular file, so git ignores it: replace it with one")
    existing = path.read_bytes() if path.exists() else b""
    if has_ignore_line(existing, pattern):
        return []
    with path.open("ab") as file:
        file.write((b"\n" if existing and not existing.endswith(b"\n") else b"") + pattern.encode() + b"\n")
    return [f"added the line {pattern} to .gitignore"]
