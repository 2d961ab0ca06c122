"""The command `code-commit`, and `python -m code_commit`: first restrict what can be imported."""

import gc
import os
import sys

from code_commit.trust import clean_import_path, own_command


def tool() -> None:
    """Run the command of this process for an agent that has called it as a tool."""
    command(for_agent=True)


def command(*, for_agent: bool = False) -> None:
    """Run the command of this process and end it at once."""
    gc.set_threshold(100_000)  # modules keep what they create, and collecting it took a twentieth of `--help`
    if sys.getfilesystemencoding() != "utf-8" and sys.executable:
        _start_in_utf8_mode()
    clean_import_path()
    words = len(sys.argv)
    mistake = _change_folder(sys.argv)
    if len(sys.argv) < words:
        clean_import_path()
    if sys.argv[1:2] == ["fleet"] and not sys.flags.isolated:
        os.execv(sys.executable, [*own_command(), *sys.argv[1:]])  # noqa: S606 - Dask starts its workers with our flags
    import signal  # only now: it imports others

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # until our handlers are there: no traceback of an import
    from code_commit.cli import command

    command(mistake, for_agent=for_agent)


def _start_in_utf8_mode() -> None:
    """Start Python anew, so that names of files are UTF-8, as git's are, whatever the locale says.

    A word in the locale's encoding that names no file, such as a task, becomes UTF-8.
    """
    words: list[str | bytes] = [sys.executable, "-X", "utf8"]
    for word in sys.orig_argv[1:]:
        content = os.fsencode(word)
        if not os.path.lexists(word):
            try:
                content.decode("utf-8")
            except UnicodeDecodeError:
                content = word.encode("utf-8", "surrogateescape")
        words.append(content)
    os.execv(sys.executable, words)  # noqa: S606 - the same program


def _change_folder(arguments: list[str]) -> str:
    """Change to the folders of `-C DIR` or `-CDIR` and remove these arguments. Return what is wrong with one, or ""."""
    place = 1
    while place < len(arguments) and arguments[place] != "--":
        word = arguments[place]
        if not word.startswith("-C"):
            place += 1
            continue
        end = place + (2 if word == "-C" else 1)
        if end > len(arguments):
            return "-C needs a value: -C DIR"
        folder = arguments[end - 1] if word == "-C" else word[2:].removeprefix("=")
        try:
            os.chdir(folder)
        except OSError as error:
            return f"cannot go to {folder!r}: {error.strerror}; name an existing folder"
        del arguments[place:end]
    return ""


if __name__ == "__main__":
    command()
