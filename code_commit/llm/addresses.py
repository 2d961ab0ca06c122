"""The addresses that a key may go to: the vendor's, that of a key in agent-config, and the user's own (remembered).

A prompt goes to any other only if all of it is the project's, no file of agent-config that leads out of it, and a key
in agent-config says that somebody has an account there.
"""

import json
import os
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from code_commit.errors import Named, NotSetUpError
from code_commit.files import read_regular_file
from code_commit.llm.models import VENDORS, check_base_url, names_address
from code_commit.llm.proxies import is_this_machine
from code_commit.llm.vendor import LlmConfig
from code_commit.project import AGENT_CONFIG, Project, shown_path
from code_commit.settings import COMMAND_LINE, ENVIRONMENT_PREFIX, FILE, LOG, USER
from code_commit.terminal import shown


def require_address(llm: LlmConfig, project: Project, role: str = "") -> str:
    """Return the API's address. Raises NotSetUpError like `check_base_url`, and if only the project's files name it."""
    url = check_base_url(llm.choice, llm.settings, role)
    name, provider, outside = _setting_of(llm, project, url, role), llm.choice.provider, _from_outside(llm, project)
    source, variable = llm.settings.source_of(name), ENVIRONMENT_PREFIX + name.upper()
    is_named = os.environ.get(variable) == getattr(llm.settings, name, None) or _is_users_own(llm, url)
    if not outside[0] or source not in (FILE, LOG) or is_named or _is_remembered(project, provider, url):
        return url
    whose = f"{AGENT_CONFIG}/config.toml" if source == FILE else "the log of this run"
    once = "once " if _memory(project) else ""
    raise NotSetUpError(
        f"{outside[0]} would be sent to {shown(urlsplit(url).netloc)}, which only {whose} names: if that is right,"
        f" confirm it {once}with ",
        Named(name, f"{provider}:{url}"),
        f" (in CI with the variable {variable}), or {outside[1]}",
    )


def _from_outside(llm: LlmConfig, project: Project) -> tuple[str, str]:
    """Return what a request has from outside of agent-config and the way to have it there, ("", "") for nothing.

    It may be a key, or a file of the prompt: a link may lead to whatever the user can read. Without any key nothing
    tells whose agent-config it is, and the task may come from outside of it.
    """
    if llm.key is not None and not llm.key.in_project:
        return llm.key.source, f"put the key itself into {AGENT_CONFIG}/{llm.choice.provider}-key.txt"
    top = project.git.work_tree if project.git else project.root
    inside = (top, Path(os.path.realpath(project.agent_config)))
    files = [project.query_file, project.codebase_file, project.system_prompts]
    with suppress(OSError):
        files += project.system_prompts.iterdir()
    for file in files:
        target = Path(os.path.realpath(file))
        if not any(map(target.is_relative_to, inside)):
            name = shown(os.path.relpath(file, project.root))
            return f"{shown(str(target))}, through the link {name},", f"put the text itself into {name}"
    if llm.key is None:
        return "your task and the project, without a key,", "name the address and the model in your own settings"
    return "", ""


def _is_users_own(llm: LlmConfig, url: str) -> bool:
    """Tell whether the user's own settings name the address too, for the same provider."""
    own = llm.settings.sources.get(USER, {})
    leads = [lead for lead in ("", "fallback_") if own.get(f"{lead}base_url")]
    return any(names_address(own, lead, llm.choice, llm.settings, url) for lead in leads)


def remember_address(llm: LlmConfig, project: Project, role: str = "") -> str:
    """Remember an address for this project if an option names it; return what to say of it."""
    url = check_base_url(llm.choice, llm.settings, role)
    name, provider = _setting_of(llm, project, url, role), llm.choice.provider
    by_option = llm.settings.source_of(name) == COMMAND_LINE
    memory = _memory(project)
    if not name or not by_option or memory is None or _is_remembered(project, provider, url):
        return ""
    with suppress(OSError):  # it is asked for again
        memory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(memory, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with open(file, "w", encoding="utf-8") as lines:  # noqa: PTH123 - a descriptor
            lines.write(f"{_line(project, provider, url)}\n")
        return f"{shown(provider)} at {shown(url)} is remembered for this project, in {shown_path(memory)}"
    return ""


def _setting_of(llm: LlmConfig, project: Project, url: str, role: str) -> str:
    """Return the setting that supplied the address, "" if a request may go there without consent."""
    settings = llm.settings
    has_users_key = llm.key is not None and not llm.key.in_project and not llm.key.is_dummy
    stays_here = is_this_machine(urlsplit(url).hostname or "") and not has_users_key
    is_everyones = stays_here or url in ("", VENDORS[llm.choice.provider].base_url)
    if is_everyones or not _from_outside(llm, project)[0] or (role and not settings.fallback_base_url):
        return ""
    return f"{role}_base_url" if role else "base_url"


def _is_remembered(project: Project, provider: str, url: str) -> bool:
    memory = _memory(project)
    try:
        lines = read_regular_file(memory).decode("utf-8", "replace").split("\n") if memory else []
    except OSError:
        return False
    return _line(project, provider, url) in lines


def _line(project: Project, provider: str, url: str) -> str:
    return json.dumps([os.fsencode(project.root).decode("utf-8", "backslashreplace"), provider, url])


def _memory(project: Project) -> Path | None:
    """Return the file of the remembered addresses, None if it would be in the work tree."""
    folder = state_folder(project)
    return folder and folder / "addresses"


def state_folder(project: Project) -> Path | None:
    """Return the folder of what is remembered of all runs of this user, None if it would be in the work tree."""
    folder = Path(os.environ.get("XDG_STATE_HOME", ""))
    if not folder.is_absolute():
        folder = Path(os.path.expanduser("~/.local/state"))  # noqa: PTH111 - no error
    own = Path(os.path.realpath(folder / "code-commit"))
    top = project.git.work_tree if project.git else project.root
    return own if folder.is_absolute() and not own.is_relative_to(top) else None
