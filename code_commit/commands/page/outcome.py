"""What came of a run and of its attempts, in words: for the page and for the summary in Markdown."""

from dataclasses import dataclass
from typing import Literal

from code_commit.run_record import Attempt, RunRecord

Tone = Literal["good", "bad", "wait"]


@dataclass(frozen=True, slots=True)
class Headline:
    """What came of a run, in a few words, with a sign and a tone."""

    text: str
    tone: Tone

    @property
    def sign(self) -> str:
        return {"good": "✓", "bad": "✗", "wait": "…"}[self.tone]


def headline_of(record: RunRecord, status: str) -> Headline:
    """Return what came of the run; `status` is its status, `killed` where its process is gone."""
    if status == "success":
        built = any(attempt.build for attempt in record.attempts)
        if record.command == "undo":
            return Headline("Undone", "good")
        if built:
            return Headline("The build passes", "good")
        return Headline("Applied, not built" if _applied(record) else "Verified, nothing was changed", "good")
    return _HEADLINES.get(status) or Headline(status.replace("_", " ").capitalize(), "bad")


_HEADLINES = {
    "running": Headline("Still running", "wait"),
    "killed": Headline("Killed while it ran", "bad"),
    "interrupted": Headline("Interrupted", "wait"),
    "build_failed": Headline("The build still fails", "bad"),
    "not_set_up": Headline("Not set up", "bad"),
    "llm_error": Headline("The LLM could not be asked", "bad"),
    "rejected": Headline("The response was rejected", "bad"),
    "build_error": Headline("The build could not be run, or files not be written", "bad"),
    "internal_error": Headline("A bug in code-commit", "bad"),
}


def _applied(record: RunRecord) -> bool:
    return any(attempt.verdict == "applied" for attempt in record.attempts)


def outcome_of(attempt: Attempt) -> str:
    """Return what came of an attempt, in one word."""
    if attempt.build:
        return "passed" if attempt.build.passed else "failed"
    if attempt.verdict:
        return attempt.verdict
    return "proposed" if attempt.changes else "unanswered"


def summary_of(attempt: Attempt) -> str:
    """Return what came of an attempt, in a few words."""
    if attempt.build:
        return f"build {'passed' if attempt.build.passed else 'failed'}: {attempt.build.ending}"
    count = len(attempt.rejections) + attempt.more_rejections
    reasons = "1 reason" if count == 1 else f"{count:,} reasons"
    summaries = {
        "applied": "applied",
        "rejected": f"rejected, nothing written: {reasons}",
        "proposed": "verified, not applied",
        "unanswered": "no usable answer",
    }
    return summaries[outcome_of(attempt)]
