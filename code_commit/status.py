"""The ends of a run: one row for each, with all that other modules ask of it.

run.json has the `recorded` ones. The others are worked out from a record (`killed`, `not_approved`, `dry_run`), or say
what came of a fleet's task, in its results.jsonl.
"""

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, Self

if TYPE_CHECKING:
    from pydantic_core import CoreSchema

Tone = Literal["good", "bad", "wait"]
RECORDED, RESUMABLE, FINAL, UNJUDGED = range(4)  # traits


class Status(StrEnum):
    """An end of a run: its words, its exit code unless the error has another, the headline of its page, its traits."""

    words: str
    exit_code: int
    tone: Tone
    headline: str
    is_recorded: bool  # run.json may have it
    is_resumable: bool  # `resume` may have a next step
    is_final: bool  # a fleet has no next step for its task, and needs its log no more
    is_judged: bool  # it tells something of the LLM, else statistics leave it out

    def __new__(cls, value: str, words: str, exit_code: int, tone: Tone, headline: str, *traits: int) -> Self:
        status = str.__new__(cls, value)
        status._value_ = value
        status.words, status.exit_code, status.tone, status.headline = words, exit_code, tone, headline
        status.is_recorded, status.is_resumable = RECORDED in traits, RESUMABLE in traits
        status.is_final, status.is_judged = FINAL in traits, UNJUDGED not in traits
        return status

    RUNNING = "running", "running", 70, "wait", "Still running", RECORDED, RESUMABLE
    SUCCESS = "success", "success", 0, "good", "The build passes", RECORDED, FINAL
    BUILD_FAILED = "build_failed", "build failed", 1, "bad", "The build still fails", RECORDED, FINAL
    NOT_SET_UP = "not_set_up", "not set up", 2, "bad", "Not set up", RECORDED, UNJUDGED
    LLM_ERROR = "llm_error", "LLM error", 3, "bad", "The LLM could not be called", RECORDED, RESUMABLE
    REJECTED = "rejected", "rejected", 4, "bad", "The response was rejected", RECORDED, FINAL
    DECLINED = "declined", "declined", 4, "bad", "The LLM says that it cannot do this", RECORDED, FINAL
    BUILD_ERROR = (
        *("build_error", "machine error", 5, "bad", "The build could not run, or files could not be written"),
        *(RECORDED, RESUMABLE),
    )
    REFUSED = "refused", "refused", 2, "bad", "Refused", RECORDED
    INTERNAL_ERROR = "internal_error", "internal error", 70, "bad", "A bug in code-commit", RECORDED, RESUMABLE
    INTERRUPTED = "interrupted", "interrupted", 130, "wait", "Interrupted", RECORDED, RESUMABLE, UNJUDGED

    KILLED = "killed", "killed", 70, "bad", "Killed while running"
    NOT_APPROVED = "not_approved", "not approved", 4, "bad", "The answer was not approved"
    DRY_RUN = "dry_run", "dry run", 0, "good", "Verified, nothing was changed"

    NOT_VERIFIED = "not_verified", "not verified", 1, "bad", "The build passes, but not with the `verify` files", FINAL
    UNFIT = "unfit", "unfit", 1, "bad", "The tests do not detect the solution"
    TIMED_OUT = "timed_out", "timed out", 143, "bad", "Timed out"
    MACHINE_FAILED = "machine_failed", "machine failed", 5, "bad", "The machine failed", UNJUDGED

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: Any) -> "CoreSchema":
        """Read the recorded ones; the JSON schema shows their names."""
        from pydantic_core import core_schema

        names = core_schema.literal_schema([status.value for status in cls if status.is_recorded])
        return core_schema.no_info_after_validator_function(cls, names)


def status_in_words(name: str) -> str:
    """Return a status for people, also one of another version."""
    return next((status.words for status in Status if status == name), name.replace("_", " "))
