"""JavaScript and TypeScript: the scripts of package.json, by the package manager that it or its lock file names."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from code_commit.commands.build_scripts.kind import Kind, first_file, install_once, members, read_object

_LOCK_FILES = (
    ("pnpm-lock.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
    ("bun.lock", "bun"),
    ("bun.lockb", "bun"),
    ("package-lock.json", "npm"),
    ("npm-shrinkwrap.json", "npm"),
)
_NO_TEST = "no test specified"  # npm init's own test script, which always fails
_EVERYWHERE: Mapping[str, str] = {
    "npm": "npm run {} --workspaces --if-present",
    "pnpm": "pnpm --recursive --if-present run {}",
    "yarn": "yarn workspaces foreach --all run {}",
    "bun": "bun run --filter '*' {}",
}


def find_node(folder: Path) -> Kind | None:
    if not (folder / "package.json").is_file():
        return None
    package = read_object(folder / "package.json")
    tool = _package_manager(folder, package)
    return Kind("JavaScript", "package.json", (*_install(folder, package, tool), *_commands(folder, package, tool)))


def find_deno(folder: Path) -> Kind | None:
    evidence = first_file(folder, ["deno.json", "deno.jsonc"])
    if evidence is None:
        return None
    tasks = members(read_object(folder / evidence).get("tasks"))
    return Kind("Deno", evidence, ("deno task test" if "test" in tasks else "deno test --allow-all",))


def _package_manager(folder: Path, package: Mapping[str, Any]) -> str:
    named = str(package.get("packageManager", "")).partition("@")[0]
    if named in _EVERYWHERE:
        return named
    return next((tool for name, tool in _LOCK_FILES if (folder / name).is_file()), "npm")


def _install(folder: Path, package: Mapping[str, Any], tool: str) -> tuple[str, ...]:
    if not any(package.get(name) for name in ("dependencies", "devDependencies", "workspaces")):
        return ()
    is_locked = any((folder / name).is_file() for name, locked_by in _LOCK_FILES if locked_by == tool)
    frozen = "--immutable" if tool == "yarn" and (folder / ".yarnrc.yml").is_file() else "--frozen-lockfile"
    command = f"{tool} install{' ' + frozen if is_locked else ''}"
    if tool == "npm":
        command = "npm ci" if is_locked else "npm install --no-package-lock"
    return (
        "# Dependencies are installed where there are none yet; this needs the network.",
        install_once("node_modules", command),
    )


def _commands(folder: Path, package: Mapping[str, Any], tool: str) -> tuple[str, ...]:
    scripts = members(package.get("scripts"))
    wanted = [name for name in ("build", "test") if name in scripts and _NO_TEST not in str(scripts[name])]
    if wanted:
        # `CI` keeps test runners from watching; a build may take warnings for errors with it.
        return tuple(f"{'CI=true ' if name == 'test' else ''}{tool} run {name}" for name in wanted)
    if package.get("workspaces") or (folder / "pnpm-workspace.yaml").is_file():
        return tuple(_EVERYWHERE[tool].format(name) for name in ("build", "test"))
    lines = ("npx --no-install tsc --noEmit",) if (folder / "tsconfig.json").is_file() else ()
    if _has_tests(folder):
        return (*lines, "# package.json has no test script: Node's own test runner.", "node --test")
    return lines


def _has_tests(folder: Path) -> bool:
    """Tell whether `node --test` finds files by itself."""
    places = [folder, folder / "test", folder / "tests", folder / "src"]
    endings = [f"*{mark}.{ending}" for mark in (".test", "-test", "_test") for ending in ("js", "mjs", "cjs")]
    return any(first_file(place, endings) for place in places) or bool(first_file(folder / "test", ["*.js", "*.mjs"]))
