"""pre-commit's hooks as part of a build."""

from pathlib import Path

from code_commit.commands.build_scripts.kind import Kind

_SETTINGS = ".pre-commit-config.yaml"


def find_pre_commit(root: Path) -> Kind | None:
    """Return how the hooks are run: `--all-files` would leave out the files that are new, `run` alone all of them."""
    if not (root / _SETTINGS).is_file():
        return None
    files = "git ls-files -z --cached --others --exclude-standard"
    lines = (
        f"hooks() {{ {files} | xargs -0 pre-commit run --files; }}",
        "hooks || hooks  # a hook that rewrites a file fails: the second run tells whether all is well now",
    )
    return Kind("pre-commit", _SETTINGS, lines)
