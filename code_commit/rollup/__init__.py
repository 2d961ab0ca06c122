"""The code rollup: the text files of the project in one file, each behind a line that names it, sorted by path.

    --- src/main.rs ---
    fn main() {}

Which files there are is for `listing`, what their names say for `names`, how one is read without harm for `reading`,
how the rollup takes the place of the one before for `replacing`. Memory: one chunk of a file, and the list of paths.
"""

from collections.abc import Iterable

from code_commit.errors import NotSetUpError
from code_commit.project import AGENT_CONFIG, Project
from code_commit.redaction import Redactor
from code_commit.rollup.listing import Listing, list_files, match_plainly, walk_files
from code_commit.rollup.names import LOCK_FILE_LIMIT, fit_names
from code_commit.rollup.reading import FileReader, UnfitFileError
from code_commit.rollup.replacing import replaced
from code_commit.rollup.summary import CHANGED, EXCLUDED, REVEALS_KEY, UNREADABLE, Rollup

__all__ = [
    "CHANGED",
    "EXCLUDED",
    "LOCK_FILE_LIMIT",
    "REVEALS_KEY",
    "UNREADABLE",
    "Listing",
    "Rollup",
    "fit_names",
    "list_files",
    "match_plainly",
    "walk_files",
    "write_rollup",
]


def write_rollup(
    project: Project,
    names: Iterable[str],
    redactor: Redactor,
    rollup: Rollup,
    lock_file_limit: int = LOCK_FILE_LIMIT,
) -> None:
    """Write agent-config/codeRollup.txt from the files of these names, and into `rollup` what came of each.

    The rollup before it stays until the new one is whole. Raises NotSetUpError, and leaves it, when no file is left or
    the new one cannot be written. It is not synced: after a power cut it is made again.
    """
    try:
        with replaced(project.agent_config, project.codebase_file.name) as output:
            with FileReader(project.root, redactor, lock_file_limit) as reader:
                for name in names:
                    try:
                        size, characters = reader.copy(name, output)
                    except UnfitFileError as fault:
                        rollup.leave_out(fault.reason, name, fault.detail)
                    else:
                        rollup.add(name, size, characters)
            if not rollup.files:
                left_out = rollup.left_out_line()
                raise NotSetUpError(f"there is no file to roll up{'; ' + left_out if left_out else ''}")
            output.flush()
            rollup.bytes = output.size
    except OSError as error:
        message = f"{AGENT_CONFIG}/{project.codebase_file.name} cannot be written, it is as it was: {error.strerror}"
        raise NotSetUpError(message) from error
