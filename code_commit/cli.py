"""The command line: argv -> command -> exit code. The one place where errors end and become messages."""

import gc
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

from code_commit.commands import load_command, make_parser
from code_commit.errors import EXIT_INTERNAL_ERROR, CodeCommitError, Interrupted

EXIT_BROKEN_PIPE = 128 + 13  # SIGPIPE

_OBJECTS_BETWEEN_COLLECTIONS = 50_000
"""Python's own 700 have it look for garbage some 300 times while modules load, a twentieth of a short run's time."""


def command() -> NoReturn:
    """Run the command of this process and end it, without taking down some 300 modules one by one: 15 ms."""
    code = main()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        sys.exit(code)  # closed or full: the interpreter's own end says so
    os._exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    _open_standard_streams()
    _install_signal_handlers()
    try:
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
        import traceback

        logged = bool(getattr(error, "__notes__", []))
        _complain("a bug in code-commit" if logged else "".join(traceback.format_exception(error)), error)
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
    def interrupt(number: int, _frame: FrameType | None) -> None:
        raise Interrupted(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup wants to be left alone
            signal.signal(number, interrupt)
    sys.unraisablehook = _interrupt_again


_SWALLOWED_AGAIN_AFTER = 0.01  # seconds


def _interrupt_again(swallowed: "sys.UnraisableHookArgs") -> None:
    """Send a signal once more that came where Python drops what is raised.

    That is in a finalizer, or in the callback by which an import gives its lock back.
    """
    error = swallowed.exc_value
    if not isinstance(error, Interrupted):
        sys.__unraisablehook__(swallowed)
        return
    import _thread
    import time

    def send() -> None:
        time.sleep(_SWALLOWED_AGAIN_AFTER)  # by then the main thread has left that place
        os.kill(os.getpid(), number)

    number = error.signal_number
    _thread.start_new_thread(send, ())
