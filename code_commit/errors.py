"""The failures of the stages, each with the exit code and the run status that it ends with.

    CodeCommitError
      NotSetUpError           2  not_set_up     wrong usage or an unfit project: nothing was sent or changed
        NoKeyError                              there is no API key that can be used
        TooLittleMoneyError                     --max-cost does not pay for one answer
      LLMError                3  llm_error      the LLM could not be called
        OverBudgetError                         the next call could exceed --max-cost
      RejectedResponseError   4  rejected       the response cannot be used (in `changes`: it carries violations)
      DeclinedError           4  declined       the LLM says that it cannot do this (in `changes`)
      MachineError            5  build_error    something beside the code and the LLM failed
        BuildError                              build.sh could not be run, or broke a protected file
        ApplyError                              the files could not be written; the tree is as it was before
          ChangedSinceError   1  refused        an undo would lose what changed since (in `apply`)
          UnfitPathError      2  refused        a log or a journal names a path that no answer may change (in `apply`)
        LogError                                the run's log could not be written
        OutputError                             standard output could not be written
        ClusterError                            a fleet lost its cluster
        ShortageError                           the machine has no memory, file or process left for us
    Interrupted     129/130/143  interrupted    a signal; it is a KeyboardInterrupt, so that no step swallows it

A failing build is no exception: the loop goes on from it (exit code 1, `build_failed`).
"""

import errno
from typing import NamedTuple

from code_commit.status import Status

TYPE_CHECKING = False  # types cost no time at start-up; typing would compile those of a NamedTuple that are texts
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from typing import ClassVar, Literal

    Message = tuple["str | Named", ...]
    Word = Callable[["Named"], str]
    LLMErrorKind = Literal["network", "key", "quota", "too_long", "refused", "timeout", "budget", "replay"]
else:
    LLMErrorKind, Message, Word = str, tuple, object

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOMEM)
EXIT_SUCCESS = Status.SUCCESS.exit_code
EXIT_BUILD_FAILED = Status.BUILD_FAILED.exit_code
EXIT_INTERNAL_ERROR = Status.INTERNAL_ERROR.exit_code
FAULTS = {
    "missing": "is missing",
    "string_type": "must be a string",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "greater_than": "must be more than 0",
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
}
"""The words for pydantic's faults in what a user writes, by its names of them."""


class Named(NamedTuple):
    """A setting that a message names, and what to write there: each surface words it (`--model NAME`, `model=NAME`).

    TASK and CODEBASE are named as settings are.
    """

    setting: str
    value: str = ""


TASK, CODEBASE = Named("task"), Named("codebase")


def as_option(named: Named) -> str:
    """Word it for a command line."""
    of_commands = {TASK: "-m TEXT", CODEBASE: "code-commit rollup"}
    return of_commands.get(named) or f"--{named.setting.replace('_', '-')} {named.value}".rstrip()


def as_setting(named: Named) -> str:
    """Word it for a file of settings."""
    return f"{named.setting} = {named.value}" if named.value else named.setting


def in_words(message: Message, word: Word = as_option) -> str:
    """Return a message in the words of a surface, the command line's by default."""
    return "".join(word(part) if isinstance(part, Named) else part for part in message)


def in_lines(messages: "Iterable[Message]", mark: str = "") -> Message:
    """Return messages one below the other, each of their lines after a mark."""
    lines: list[str | Named] = []
    for message in messages:
        marked = (part if isinstance(part, Named) else part.replace("\n", f"\n{mark}") for part in message)
        lines += ["\n" * bool(lines) + mark, *marked]
    return tuple(lines)


class CodeCommitError(Exception):
    """A message to the user; `str()` says what was wrong, where, and what to do next, for a command line.

    Its parts are the arguments. A caller that is no command line asks for its own words of what they name.
    """

    exit_code: "ClassVar[int]"
    status: "ClassVar[Status]"
    complaint: str = ""  # the message of the command line, where that is not `str()`

    def __init__(self, *message: str | Named) -> None:
        super().__init__(*message)

    @property
    def message(self) -> Message:
        return self.args

    def __str__(self) -> str:
        return in_words(self.message)


class NotSetUpError(CodeCommitError):
    """The project, the configuration or the command line is not fit to start a run."""

    status = Status.NOT_SET_UP
    exit_code = status.exit_code


class NoKeyError(NotSetUpError):
    """There is no usable API key for `provider`; "" where none is named and none has one."""

    kind = "key"

    def __init__(self, *message: str | Named, provider: str = "") -> None:
        super().__init__(*message)
        self.provider = provider


class TooLittleMoneyError(NotSetUpError):
    """`--max-cost` does not pay for one useful answer: that takes `needed_usd` US dollars."""

    def __init__(self, *message: str | Named, needed_usd: float) -> None:
        super().__init__(*message)
        self.needed_usd = needed_usd


class LLMError(CodeCommitError):
    """The LLM could not be called: `kind` says why."""

    status = Status.LLM_ERROR
    exit_code = status.exit_code

    def __init__(self, message: str, kind: LLMErrorKind = "network") -> None:
        super().__init__(message)
        self.kind = kind


class OverBudgetError(LLMError):
    """The next call, to whichever LLM, needs `needed_usd` US dollars; `left_usd` of `--max-cost` are left."""

    def __init__(self, message: str, needed_usd: float, left_usd: float) -> None:
        super().__init__(message, "budget")
        self.needed_usd = needed_usd
        self.left_usd = left_usd


class MachineError(CodeCommitError):
    """Something beside the code and the LLM failed."""

    status = Status.BUILD_ERROR
    exit_code = status.exit_code


class BuildError(MachineError):
    """build.sh could not be run, or it changed protected files."""


class ApplyError(MachineError):
    """The changes could not be written; every file is as it was before."""


class LogError(MachineError):
    """A file or folder of the log could not be written, read or removed."""

    def __init__(self, path: "Path", error: OSError, verb: str = "used") -> None:
        advice = "; free some space there" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        super().__init__(f"the log file {path} cannot be {verb}: {error.strerror}{advice}")


class OutputError(MachineError):
    """Standard output could not be written; what was done before is done."""


class ClusterError(MachineError):
    """A fleet's cluster is gone; what had ended is kept."""


class ShortageError(MachineError):
    """The machine, or a limit such as `ulimit -n`, gave no more of what the work takes."""


def known_error(error: BaseException) -> BaseException:
    """Return the error, or the ShortageError or Interrupted that it amounts to."""
    if isinstance(error, KeyboardInterrupt) and not isinstance(error, Interrupted):
        return Interrupted(2)  # SIGINT, as Python's own handler tells it to a caller of the API

    words = ""
    if isinstance(error, MemoryError):
        words = "out of memory"
    elif isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN):
        words = f"the system refuses: {error.strerror}"
    elif isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        words = "the system refuses to start a thread"
    advice = "no file is half written; raise the limit (`ulimit -a` shows them all), or make room, and run again"
    return ShortageError(f"{words}; {advice}") if words else error


class Interrupted(KeyboardInterrupt):
    """A signal asked the run to end."""

    status = Status.INTERRUPTED

    def __init__(self, signal_number: int) -> None:
        from signal import Signals

        super().__init__(f"interrupted by {Signals(signal_number).name}; no file is half written")
        self.signal_number = signal_number
        self.exit_code = 128 + signal_number
