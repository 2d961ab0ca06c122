"""The checks of the project: the ignore line, build.sh, no lock, a terminal where one is needed, a clean tree."""

import errno
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from code_commit.apply.lock import is_locked
from code_commit.apply.recover import HALF_CHANGED, is_half_changed
from code_commit.build.command import build_command
from code_commit.check.plan import Report, has_ignore_line
from code_commit.errors import TASK, BuildError, Named, NotSetUpError, in_lines, in_words
from code_commit.files import explain_unread, read_regular_file
from code_commit.git import UnansweredError
from code_commit.paths.patterns import explain_patterns, find_unmatched
from code_commit.project import AGENT_CONFIG, BUILD_SCRIPT, Project, read_text
from code_commit.regex import regex
from code_commit.runs.list import changed_files, find_run_folders, is_standing, read_run, short_name, status_of
from code_commit.runs.record import RunRecord
from code_commit.runs.review import TreeState, look_at_tree
from code_commit.settings import Settings
from code_commit.status import Status
from code_commit.terminal import TERMINAL, shown
from code_commit.verify import ignored_paths

_UNWRITTEN = b"build.sh: put your build and test commands here"
"""The text in build.sh.example, which fails until the user edits it."""
_SHELL = regex(r"#![^\n]*\b\w*sh\b(?P<options>[^\n]*)")
_NO_CODE = regex(r"""(?P<quoted>'[^']*'|"(?:\\.|[^"\\])*")|(?:^|(?<=\s))#[^\n]*|\\\n""", re.MULTILINE)
_HERE_DOCUMENT = regex(r"<<-?[ \t]*[\"']?(\w+)[\"']?([^\n]*)\n(?:[^\n]*\n)*?[ \t]*\1[ \t]*$", re.MULTILINE)
_ENDS_AT_FAILURE = regex(r"\bset\s[^\n;]*(?:-[A-Za-z]*e|errexit)|\btrap\b[^\n;]*\bERR\b")
_OPENING = regex(r"(?:(?:then|else|do|time|!|\{|\()(?:\s+|$)|\w+\s*\(\)\s*)+")
_CLOSING = regex(r"(?:fi|done|esac|\}|\)|;;)(?:\s|$)")
_HARMLESS = regex(
    r"(?:cd|echo|printf|export|readonly|local|set|shopt|unset|umask|trap|true|:|exit|return|if|elif|while|until|for|case)"
    r"(?:\s|$)|\w+=\S*$|$"
)
"""The commands whose failure is seldom that of the build."""
_OF_UNMATCHED = {"allow": "it allows only new files", "protect": "it protects no existing file"}


def read_task(project: Project, given: str | None, command: str = "run") -> str:
    """Return the task, that of query.txt where none is given to the command. Raises NotSetUpError."""
    if given is None:
        otherwise = () if command == "rollup" else (", or give it with ", TASK)
        return read_text(project.query_file, ("write the task into it", *otherwise))
    if not given.strip():
        way = "omit it, or describe it with " if command == "repair" else "describe it with "
        raise NotSetUpError(f"the task is empty: {way}", TASK)
    if given.encode("utf-8", "ignore").decode() != given:
        raise NotSetUpError("the task is not valid UTF-8: describe it with ", TASK)
    return given


def check_agent_config(project: Project) -> None:
    """Raise NotSetUpError where agent-config is a link, behind which git looks up no path, or no folder."""
    if project.agent_config.is_symlink():
        raise NotSetUpError(f"{AGENT_CONFIG} is a link: put a real folder there")
    if project.agent_config.exists() and not project.agent_config.is_dir():
        raise NotSetUpError(f"{AGENT_CONFIG} is not a folder: move it away, then run code-commit init")


def check_ignore_line(project: Project) -> None:
    """Raise NotSetUpError unless .gitignore has the line /agent-config and, after all its rules, ignores it."""
    try:
        rules = (project.root / ".gitignore").read_bytes()
    except FileNotFoundError as error:
        message = f".gitignore is missing: create it with the line /{AGENT_CONFIG}, and commit it"
        raise NotSetUpError(message) from error
    except OSError as error:
        raise NotSetUpError(explain_unread(project.root / ".gitignore", ".gitignore", error)) from error
    if not has_ignore_line(rules):
        raise NotSetUpError(
            f".gitignore lacks the line /{AGENT_CONFIG}: add and commit it, so that no API key is committed"
        )
    if not ignored_paths(project, [f"{AGENT_CONFIG}/query.txt"]):
        raise NotSetUpError(f".gitignore has /{AGENT_CONFIG}, but a later rule includes it again: remove that rule")


def check_nothing_is_tracked(project: Project) -> None:
    """Raise NotSetUpError where git tracks a file of agent-config, or does not say what it tracks."""
    try:
        names = sorted(path for path in project.index().files if path.split("/")[0] == AGENT_CONFIG)
    except UnansweredError as error:
        raise NotSetUpError(str(error)) from error
    if names:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        way = f"run git rm -r --cached {AGENT_CONFIG}, and revoke any key that was committed"
        raise NotSetUpError(f"git tracks {shown(names[0])}{more}: {way}")


def check_build_script(project: Project, environment: Mapping[str, str], warn: Callable[[str], object]) -> None:
    """Raise NotSetUpError for a build.sh that cannot be started, is empty or still the example."""
    try:
        build_command(project, environment, warn)
        script = read_regular_file(project.build_script)
        if _UNWRITTEN in script:
            raise NotSetUpError(f"{BUILD_SCRIPT} is still the example: put your build and test commands into it")
        if all(line.lstrip()[:1] in (b"", b"#") for line in script.split(b"\n")):
            raise NotSetUpError(f"{BUILD_SCRIPT} has no command, so it would always pass: put your commands into it")
    except BuildError as error:
        raise NotSetUpError(str(error)) from error
    except OSError as error:
        raise NotSetUpError(f"{BUILD_SCRIPT} cannot be read: {error.strerror}") from error


def note_lost_failures(report: Report, project: Project) -> None:
    """Note a build.sh that goes on after a command that fails: its exit code would be that of a later one."""
    with suppress(OSError):
        script = read_regular_file(project.build_script).decode("utf-8", "replace")
        if loses_failures(script):
            report.warn(
                f"{BUILD_SCRIPT} has no set -e, so it can pass even if a command in it fails: add set -e at its top"
            )


def note_unfinished(report: Report, project: Project) -> None:
    """Note a tree that holds the changes of an interrupted run, unless a later run ended."""
    for folder in reversed(find_run_folders(project)):
        run = read_run(folder)
        if isinstance(run, RunRecord) and not run.is_auxiliary:
            break
    else:
        return
    if run.has_next_step and status_of(run) != Status.RUNNING and changed_files(folder) and is_standing(folder):
        name = short_name(run.run)
        way = f"resume {name} continues it"
        if run.error and run.error.kind == "too_long":  # resume would send the same prompt again
            way = f"undo {name} takes them back"
        report.warn(f"the tree contains changes from {name}, which did not finish: code-commit {way}")


def loses_failures(script: str) -> bool:
    """Tell whether a shell script does not end where a command fails that is not its last."""
    shell = _SHELL.match(script)
    if (script.startswith("#!") and not shell) or (shell and re.search(r"\s-[A-Za-z]*e", shell["options"])):
        return False
    code = _NO_CODE.sub(lambda match: "_" if match["quoted"] else "", _HERE_DOCUMENT.sub(r"\2", script))
    if _ENDS_AT_FAILURE.search(code):
        return False
    can_be_lost = False
    for part in re.split(r"[;\n]+", re.sub(r"(&&|\|\|?)\s*\n", r"\1 ", code)):
        command = _OPENING.sub("", part.strip(), count=1)
        if re.match(r"\s*(?:else|elif)\b", part):
            can_be_lost = False
        if not command or _CLOSING.match(command):
            continue
        if can_be_lost and "$?" not in command and command != "exit":
            return True
        can_be_lost = "||" not in command and not _HARMLESS.match(command)
    return False


def check_terminal(report: Report, settings: Settings) -> None:
    """Report a run with --approve that has no terminal."""
    if not settings.approve or settings.dry_run:
        return
    try:
        os.close(os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY))
    except OSError:
        report.refuse(
            "terminal", Named("approve"), " needs a terminal: start the run in one, or use ", Named("dry_run")
        )


def check_patterns(report: Report, settings: Settings, project: Project) -> None:
    """Report the patterns of `allow` and `protect` that can match nothing, and warn of those that match no file."""
    for name in ("allow", "protect"):
        patterns: Sequence[str] = getattr(settings, name)
        option = settings.origin(name)[0]
        if problems := explain_patterns(option, patterns, project.root):
            report.refuse(name, *in_lines(problems.values()))
        possible = [pattern for pattern in patterns if pattern not in problems]
        with suppress(UnansweredError):  # the check of git tells it
            known, any_case = project.index().files, name == "protect"
            for pattern, near in find_unmatched(possible, known, project.untracked, any_case=any_case):
                effect = "it changes nothing" if pattern.startswith("!") else _OF_UNMATCHED[name]
                hint = f"; did you mean {shown(near)!r}?" if near else ""
                unmatched = f"{in_words((option,))} {shown(pattern)} matches no file that git tracks or would track"
                report.warn(f"{unmatched}: {effect}{hint}")


def check_clean(report: Report, settings: Settings, project: Project, *, is_resumed: bool) -> TreeState | None:
    """Return the tree as git sees it before the run, None where git tells nothing; warn of one that is not clean.

    A resumed run may have changed files itself.
    """
    tree, doubt = None, "not a git repository, so there is no git diff to review; the log has a diff of each attempt"
    try:
        if tree := look_at_tree(project, with_filters=True):
            mixed = "git status is not clean: git diff will mix your changes with the LLM's"
            doubt = "" if tree.is_clean or is_resumed else mixed
    except UnansweredError as error:
        doubt = f"{error}; fix that, or there may be no diff to review"
    if doubt and settings.require_clean:
        report.refuse("clean tree", f"{doubt}, and ", Named("require_clean"), " is set: commit or stash first")
    elif doubt and not (tree and not tree.stamps):
        report.warn(doubt)
    return tree


def check_lock(project: Project) -> None:
    """Raise NotSetUpError when a run could not take the lock, or has to repair something first."""
    has_folder = os.path.lexists(project.agent_config)
    folder = project.agent_config if has_folder else project.root  # a run makes it
    name, path = (AGENT_CONFIG, AGENT_CONFIG) if has_folder else ("this folder", ".")
    if folder.is_dir() and not os.access(folder, os.W_OK | os.X_OK):
        read_only = os.statvfs(folder).f_flag & os.ST_RDONLY
        why = os.strerror(errno.EROFS if read_only else errno.EACCES)
        advice = "mount it for writing" if read_only else f"chmod u+w {path}"
        raise NotSetUpError(f"{name} cannot be written to: {why}; make it writable: {advice}")
    holder = is_locked(project)
    if holder is not None:
        process = f" (process {holder})" if holder else ""
        raise NotSetUpError(f"another code-commit is running here{process}: wait for it to end")
    if is_half_changed(project):
        raise NotSetUpError(HALF_CHANGED)
