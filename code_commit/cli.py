"""The command line: argv -> command -> exit code. The one place where errors end and become messages."""

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import NoReturn

from code_commit.commands import load_command, make_parser
from code_commit.errors import EXIT_INTERNAL_ERROR, CodeCommitError, Interrupted, known_error

EXIT_BROKEN_PIPE = 128 + 13  # SIGPIPE


def command() -> NoReturn:
    """Run the command of this process and end it at once.

    Python's own end takes modules and objects down one by one: a fifth of the time of `--help` and of `log`. It would
    also make an exit code of its own (120) of messages that standard error did not take.
    """
    code = main()
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    _open_standard_streams()
    try:
        _install_signal_handlers()
        return _run(arguments)
    except SystemExit as end:  # argparse has printed the help or the version
        return int(end.code or 0)
    except (CodeCommitError, Interrupted) as error:
        _complain(getattr(error, "complaint", str(error)), error)
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


def _run(arguments: Sequence[str]) -> int:
    try:
        options = vars(make_parser(arguments).parse_args(arguments))
        module = load_command(options.pop("command", "run"))
    except (CodeCommitError, Interrupted) as error:
        if "--json" in arguments:
            from code_commit.commands.output import print_failure

            print_failure(error)
        raise
    return module.run(options)


def _complain(message: str, error: BaseException) -> None:
    from code_commit.commands.output import complain  # `--help` needs nothing of what it needs

    complain(message, error)


def _open_standard_streams() -> None:
    """Make sure that there are all three, and that they take any text: whoever started us may have closed them."""
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: PTH123, SIM115 - as long as the process
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: PTH123, SIM115 - the same
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: PTH123, SIM115 - the same
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def _install_signal_handlers() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored on entry, it would hide how git and the build ended
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup wants to be left alone
            signal.signal(number, _interrupt)
    sys.unraisablehook = _interrupt_again


def _interrupt(number: int, _frame: FrameType | None) -> None:
    raise Interrupted(number)


def _interrupt_again(swallowed: "sys.UnraisableHookArgs") -> None:
    """Send a signal again, a little later, that came where Python drops what is raised.

    That is in a finalizer, or in the callback by which an import gives its lock back: it met 1 of 520 signals that
    were sent at random to starting runs.
    """
    error = swallowed.exc_value
    if isinstance(error, Interrupted):
        number = error.signal_number
        signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(number))
        signal.setitimer(signal.ITIMER_REAL, 0.01)
    else:
        sys.__unraisablehook__(swallowed)
