"""Programs and modules that may run outside the sandbox: none inside the project, where an answer could write them.

They are searched without the entries of PATH and `sys.path` that are relative or inside the project's git work tree.
Until `sys.path` is clean, nothing but `gc`, `os` and `sys` is imported.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_programs: dict[tuple[str, str, str], str | None] = {}
_SEARCHED = {"PATH", "PYTHONPATH", "GIT_EXEC_PATH"}
_cleaned: dict[tuple[str, str], str] = {}


def find_top(folder: str) -> str:
    """Return the top of the git work tree that the folder is in, else the folder itself; free of links."""
    folder = top = os.path.realpath(folder)
    while not os.path.lexists(os.path.join(top, ".git")):
        if top == os.path.dirname(top):
            return folder
        top = os.path.dirname(top)
    return top


def is_inside(path: str, folder: str) -> bool:
    """Tell whether the path or its target is the folder or lies in it. A relative path counts as inside."""
    spellings = (os.path.normpath(path), os.path.realpath(path))
    return not os.path.isabs(path) or any(f"{spelling}/".startswith(f"{folder}/") for spelling in spellings)


def own_folders(root: str) -> list[str]:
    """Return the folders inside the project that this tool itself is loaded from, most often none."""
    top = find_top(root)
    has_the_dependencies = os.path.isdir(os.path.join(_HOME, "httpx"))
    packages = [os.path.join(_HOME, name) for name in ("code_commit", "system_prompts")]
    found: list[str] = []
    for place in (sys.prefix, sys.base_prefix, *([_HOME] if has_the_dependencies else packages)):
        for path in (os.path.abspath(place), os.path.realpath(place)):
            is_new = f"{path}/".startswith(f"{top}/") and not any(is_inside(path, folder) for folder in found)
            if is_new and not is_inside(root, path):
                found.append(path)
    return found


def clean_import_path() -> None:
    """Drop the entries of `sys.path` inside the project of the current folder, and a PYTHONPYCACHEPREFIX there."""
    root = _current_folder()
    sys.path[:] = _import_path(root)
    if sys.pycache_prefix and is_inside(sys.pycache_prefix, find_top(root)):
        sys.pycache_prefix = None


def _import_path(root: str) -> list[str]:
    """Return the entries of `sys.path` that are outside the project, or the tool's own."""
    top, own = find_top(root), own_folders(root)
    return [path for path in sys.path if not is_inside(path, top) or any(is_inside(path, folder) for folder in own)]


def with_parent_death_signal(words: list[str], root: os.PathLike[str]) -> list[str]:
    """Return the words of a program that gets SIGTERM when the thread that starts it ends (on Linux)."""
    guard = find_program("setpriv", root)
    return [*([guard, "--pdeathsig", "TERM", "--"] if guard else []), *words]


def own_command(root: str | os.PathLike[str] = "", entry: str = "command") -> list[str]:
    """Return the words that start the command anew, as `isolated`."""
    return isolated("code_commit.__main__", entry, root)


def isolated(module: str, function: str, root: str | os.PathLike[str] = "") -> list[str]:
    """Return the words that start Python for a function of ours, with the import path of this process alone.

    File names are UTF-8 there, as git's are, whatever the locale says.
    """
    paths = _import_path(os.fspath(root) or _current_folder())
    start = f"import sys; sys.path[:] = {list(dict.fromkeys([*paths, _HOME]))}"
    return [sys.executable, "-X", "utf8", "-I", "-c", f"{start}; from {module} import {function} as start; start()"]


def find_program(name: str, root: str | os.PathLike[str]) -> str | None:
    """Return the absolute path of a program outside the project, the same one all the time; None where none is."""
    path = os.environ.get("PATH", os.defpath)
    key = (name, os.fspath(root), path)
    if key not in _programs:
        found = [os.path.join(folder, name) for folder in _outside(path, root).split(os.pathsep)]
        fit = (program for program in found if os.path.isfile(program) and os.access(program, os.X_OK))
        _programs[key] = next((program for program in fit if _outside(program, root)), None)
    return _programs[key]


def outside_environment(root: str | os.PathLike[str]) -> dict[str, str]:
    """Return the environment for a program that runs outside the sandbox: without API keys, and as `search_outside`."""
    names = [name for name in os.environ if not name.startswith("CODE_COMMIT_") and not name.endswith("_API_KEY")]
    return search_outside({name: os.environ[name] for name in names}, root)


def search_outside(environment: "Mapping[str, str]", root: str | os.PathLike[str]) -> dict[str, str]:
    """Return the environment without the folders of the project in the search paths of programs and libraries."""
    return {
        name: _outside(value, root) if name in _SEARCHED or name.startswith(("LD_", "DYLD_")) else value
        for name, value in environment.items()
    }


def _outside(paths: str, root: str | os.PathLike[str]) -> str:
    """Return the paths that lie outside the project, and outside that of the current folder."""
    key = (paths, os.fspath(root))
    if key not in _cleaned:
        tops = {find_top(os.fspath(root)), find_top(_current_folder())}
        outside = (path for path in paths.split(os.pathsep) if not any(is_inside(path, top) for top in tops))
        _cleaned[key] = os.pathsep.join(outside)
    return _cleaned[key]


def _current_folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return os.devnull  # it was removed: nothing is in it
