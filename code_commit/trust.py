"""What may run outside the sandbox: nothing that lies inside the project, where an answer or a build could write it.

Programs are looked up without the entries of PATH that are relative or inside the project, modules without such
entries of `sys.path`. Inside is the whole git work tree. Until `sys.path` is clean, nothing but `gc`, `os` and `sys` is
imported.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def find_top(folder: str) -> str:
    """Return the top of the git work tree that the folder is in, else the folder itself; free of links."""
    folder = top = os.path.realpath(folder)
    while not os.path.lexists(os.path.join(top, ".git")):
        if top == os.path.dirname(top):
            return folder
        top = os.path.dirname(top)
    return top


def is_inside(path: str, folder: str) -> bool:
    """Tell whether the path, or what it leads to, is the folder or lies in it; so does a path that is relative."""
    spellings = (os.path.normpath(path), os.path.realpath(path))
    return not os.path.isabs(path) or any(f"{spelling}/".startswith(f"{folder}/") for spelling in spellings)


def own_folders(root: str) -> list[str]:
    """Return the folders inside the project that this tool itself is loaded from: none, as a rule."""
    top = find_top(root)
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    has_the_dependencies = os.path.isdir(os.path.join(home, "httpx"))
    packages = [os.path.join(home, name) for name in ("code_commit", "system_prompts")]
    found: list[str] = []
    for place in (sys.prefix, sys.base_prefix, *([home] if has_the_dependencies else packages)):
        for path in (os.path.abspath(place), os.path.realpath(place)):
            is_new = not any(is_inside(path, folder) for folder in found)
            if is_new and f"{path}/".startswith(f"{top}/") and not is_inside(root, path):
                found.append(path)
    return found


def clean_import_path() -> None:
    """Drop the entries of `sys.path` that are inside the project in the current folder, but for the tool's own.

    Nor is compiled code taken from there (PYTHONPYCACHEPREFIX).
    """
    root = _current_folder()
    top, own = find_top(root), own_folders(root)
    sys.path[:] = [
        path for path in sys.path if not is_inside(path, top) or any(is_inside(path, folder) for folder in own)
    ]
    if sys.pycache_prefix and is_inside(sys.pycache_prefix, top):
        sys.pycache_prefix = None


def ended_with_us(words: list[str], root: os.PathLike[str]) -> list[str]:
    """Return the words of a program so that it gets SIGTERM when our thread that starts it ends (on Linux)."""
    guard = find_program("setpriv", root)
    return [*([guard, "--pdeathsig", "TERM", "--"] if guard else []), *words]


def own_command(root: str | os.PathLike[str] = "") -> list[str]:
    """Return the words that start the command anew, whatever the environment and the current folder hold for Python."""
    return isolated("code_commit.__main__", "command", root)


def isolated(module: str, function: str, root: str | os.PathLike[str] = "") -> list[str]:
    """Return the words that start Python for a function of ours, with no way in but the absolute folders of today.

    These are what this process imports from, without what lies inside the project (by default that of the current
    folder) but for the tool's own.
    """
    top, own = find_top(os.fspath(root) or _current_folder()), own_folders(os.fspath(root) or _current_folder())
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    paths = [path for path in sys.path if not is_inside(path, top) or any(is_inside(path, folder) for folder in own)]
    start = f"import sys; sys.path[:] = {list(dict.fromkeys([*paths, home]))}"
    return [sys.executable, "-I", "-c", f"{start}; from {module} import {function} as start; start()"]


def find_program(name: str, root: str | os.PathLike[str]) -> str | None:
    """Return the absolute path of a program that lies outside the project, the same one all the time."""
    path = os.environ.get("PATH", os.defpath)
    key = (name, os.fspath(root), path)
    if key not in _programs:
        found = [os.path.join(folder, name) for folder in _outside(path, root).split(os.pathsep)]
        fit = (program for program in found if os.path.isfile(program) and os.access(program, os.X_OK))
        _programs[key] = next((program for program in fit if _outside(program, root)), None)
    return _programs[key]


_programs: dict[tuple[str, str, str], str | None] = {}


def outside_environment(root: str | os.PathLike[str]) -> dict[str, str]:
    """Return the environment for a program that runs outside the sandbox: without API keys, and as `search_outside`."""
    names = [name for name in os.environ if not name.startswith("CODE_COMMIT_") and not name.endswith("_API_KEY")]
    return search_outside({name: os.environ[name] for name in names}, root)


def search_outside(environment: "Mapping[str, str]", root: str | os.PathLike[str]) -> dict[str, str]:
    """Return the environment with no folder of the project where programs or libraries are searched."""
    return {
        name: _outside(value, root) if name in _SEARCHED or name.startswith(("LD_", "DYLD_")) else value
        for name, value in environment.items()
    }


_SEARCHED = {"PATH", "PYTHONPATH"}


def _outside(paths: str, root: str | os.PathLike[str]) -> str:
    """Return those of the paths that lie outside the project, and outside that of the current folder."""
    key = (paths, os.fspath(root))
    if key not in _cleaned:
        tops = {find_top(os.fspath(root)), find_top(_current_folder())}
        outside = (path for path in paths.split(os.pathsep) if not any(is_inside(path, top) for top in tops))
        _cleaned[key] = os.pathsep.join(outside)
    return _cleaned[key]


_cleaned: dict[tuple[str, str], str] = {}


def _current_folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return os.devnull  # it was removed: nothing is in it
