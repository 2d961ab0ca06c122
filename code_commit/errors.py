"""The failures of the stages, each with the exit code and the run status that it ends with.

    CodeCommitError
      NotSetUpError           2  not_set_up     wrong usage or an unfit project: nothing was sent or changed
        NoKeyError                              there is no API key that can be used
        TooLittleMoneyError                     --max-cost does not pay for one answer
      LLMError                3  llm_error      the LLM could not be asked
        OverBudgetError                         the next call could exceed --max-cost
      RejectedResponseError   4  rejected       the response cannot be used (in `changes`: it carries violations)
      DeclinedError           4  declined       the LLM says that it cannot (in `changes`)
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

from __future__ import annotations  # types cost no time at start-up

from code_commit.status import Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import ClassVar, Literal

    LLMErrorKind = Literal["network", "key", "quota", "too_long", "refused", "timeout", "budget", "replay"]
else:
    LLMErrorKind = str

EXIT_SUCCESS = Status.SUCCESS.exit_code
EXIT_BUILD_FAILED = Status.BUILD_FAILED.exit_code
EXIT_INTERNAL_ERROR = Status.INTERNAL_ERROR.exit_code


class CodeCommitError(Exception):
    """A message to the user; `str()` says what was wrong, where, and what to do next."""

    exit_code: ClassVar[int]
    status: ClassVar[Status]
    complaint: str = ""  # the message of the command line, where that is not `str()`


class NotSetUpError(CodeCommitError):
    """The project, the configuration or the command line is not fit to start a run."""

    status = Status.NOT_SET_UP
    exit_code = status.exit_code


class NoKeyError(NotSetUpError):
    """There is no usable API key for `provider`; "" where none is named and none has one."""

    kind = "key"

    def __init__(self, message: str, provider: str = "") -> None:
        super().__init__(message)
        self.provider = provider


class TooLittleMoneyError(NotSetUpError):
    """`--max-cost` does not pay for one useful answer: that takes `needed_usd` US dollars."""

    def __init__(self, message: str, needed_usd: float) -> None:
        super().__init__(message)
        self.needed_usd = needed_usd


class LLMError(CodeCommitError):
    """The LLM could not be asked: `kind` says why, `may_be_paid` whether a missing answer may cost something."""

    status = Status.LLM_ERROR
    exit_code = status.exit_code

    def __init__(self, message: str, kind: LLMErrorKind = "network", *, may_be_paid: bool = False) -> None:
        super().__init__(message)
        self.kind = kind
        self.may_be_paid = may_be_paid


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

    def __init__(self, path: Path, error: OSError, verb: str = "used") -> None:
        super().__init__(f"the log file {path} cannot be {verb}: {error.strerror}")


class OutputError(MachineError):
    """Standard output could not be written; what was done before is done."""


class ClusterError(MachineError):
    """A fleet's cluster is gone; what had ended is kept."""


class ShortageError(MachineError):
    """The machine, or a limit such as `ulimit -n`, gave no more of what the work takes."""


def known_error(error: BaseException) -> BaseException:
    """Return the error, or the ShortageError that it amounts to."""
    import errno

    words = ""
    if isinstance(error, MemoryError):
        words = "out of memory"
    elif isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN):
        words = f"the system refuses: {error.strerror}"
    elif isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        words = "the system refuses a thread"
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
