"""The command line: argv -> command -> exit code. Each error ends here, as a message on stderr and an exit code."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn, TextIO

from code_commit.commands import parse
from code_commit.errors import (
    EXIT_INTERNAL_ERROR,
    CodeCommitError,
    Interrupted,
    NotSetUpError,
    Word,
    as_option,
    in_words,
    known_error,
)
from code_commit.interrupts import install_handlers, interruptible

EXIT_BROKEN_PIPE = 128 + 13  # SIGPIPE


def command(mistake: str = "", *, for_agent: bool = False) -> NoReturn:
    """Run the command of this process and end it at once. A mistake in its `-C` keeps it from beginning.

    Python's own end takes modules and objects down one by one: a fifth of the time of `--help` and of `log`. It would
    also exit with 120 for messages that standard error did not take.
    """
    word: Word = as_option
    if for_agent:
        from code_commit.commands.mcp import as_argument as word
    code = main(mistake=mistake, word=word)
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(code)


def main(argv: Sequence[str] | None = None, mistake: str = "", word: Word = as_option) -> int:
    """Run a command and return its exit code. `word` names the settings in the messages of errors."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    _open_standard_streams()
    try:
        install_handlers()
        return _run(arguments, mistake, word)
    except SystemExit as end:  # argparse has printed the help or the version
        return int(end.code or 0)
    except CodeCommitError as error:
        _complain(error.complaint or in_words(error.message, word), error)
        return error.exit_code
    except Interrupted as error:
        _complain(str(error), error)
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except Exception as error:  # noqa: BLE001 - the last resort: a bug ends with its own exit code
        return _end_unexpected(error)


def _end_unexpected(error: Exception) -> int:
    known, notes = known_error(error), getattr(error, "__notes__", [])
    if isinstance(known, CodeCommitError):
        with suppress(OSError):
            sys.stderr.write("\n  ".join([f"code-commit: {known}", *notes]) + "\n")  # to import or open more would fail
        return known.exit_code
    import traceback

    _complain("a bug in code-commit" if notes else "".join(traceback.format_exception(error)), error)
    return EXIT_INTERNAL_ERROR


def _run(arguments: Sequence[str], mistake: str, word: Word) -> int:
    try:
        if mistake:
            raise NotSetUpError(mistake)
        call = interruptible(lambda: parse(arguments)).worded(word)
    except (CodeCommitError, Interrupted) as error:
        if "--json" in arguments:
            from code_commit.commands.output import print_failure

            print_failure(error)
        raise
    return interruptible(call.run)


def _complain(message: str, error: BaseException) -> None:
    from code_commit.commands.output import complain  # `--help` does without its imports

    complain(message, error)


def _open_standard_streams() -> None:
    """Make sure that all three are there and take any text: the caller may have closed them."""
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: PTH123, SIM115 - as long as the process
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: PTH123, SIM115 - the same
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: PTH123, SIM115 - the same
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding=_terminal_encoding(stream), errors="backslashreplace")  # type: ignore[union-attr]


def _terminal_encoding(stream: TextIO) -> str | None:
    """Return the locale's encoding for a terminal in Python's UTF-8 mode; None where the stream has the right one."""
    if not (sys.flags.utf8_mode and stream.isatty()):
        return None
    import codecs
    import locale  # hardly any terminal is not UTF-8

    with suppress(LookupError):
        name = codecs.lookup(locale.getencoding()).name
        return None if name == "ascii" else name
    return None
