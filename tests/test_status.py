"""The ends of a run: what is asked of each, and how run.json and the documents have them."""

import json
import re
from pathlib import Path

import pytest
from command import Run

from code_commit.errors import CodeCommitError
from code_commit.redaction import Redactor
from code_commit.runs.record import RunRecord, error_facts, load_run_record
from code_commit.status import Status, status_in_words

README = Path(__file__).parents[1] / "README.md"


def record_of(status: Status) -> RunRecord:
    return RunRecord("1", "r", "run", "2026-11-21T19:51:35Z", "/p", "log", 1, status=status)


@pytest.mark.parametrize("status", Status)
def test_run_json_has_the_name_of_an_end_and_is_read_again_if_runs_record_it(status: Status):
    written = Redactor(()).redact_json(record_of(status))
    assert json.loads(written)["status"] == status.value
    if status.is_recorded:
        assert load_run_record(written).status is status
    else:
        with pytest.raises(ValueError, match="Input should be"):
            load_run_record(written)


def test_the_kind_of_an_error_without_a_kind_is_the_plain_name_of_its_end():
    class FailureError(CodeCommitError):
        status = Status.BUILD_ERROR

    assert type(error_facts(FailureError()).kind) is str


def test_the_readme_and_the_help_name_each_exit_code_of_an_end(tmp_path: Path, run_code_commit: Run):
    told = run_code_commit(tmp_path, "--help").stdout.partition("exit codes:")[2].partition("a first run:")[0]
    table = README.read_text(encoding="utf-8").partition("## Exit codes")[2].partition("\n## ")[0]
    for text in (told, table):
        assert {str(status.exit_code) for status in Status} <= set(re.findall(r"\d+", text))


def test_an_end_of_another_version_has_words_too():
    assert status_in_words("paused_by_moon") == "paused by moon"
    assert status_in_words("llm_error") == "LLM error"
    assert status_in_words("build_error") == "machine error"  # files that could not be written are one, too


def test_an_end_that_tells_nothing_of_the_llm_is_not_judged_and_a_final_one_is_not_resumed():
    unjudged = {status for status in Status if not status.is_judged}
    assert unjudged == {Status.NOT_SET_UP, Status.INTERRUPTED, Status.MACHINE_FAILED}
    assert not any(status.is_final and (status.is_resumable or not status.is_judged) for status in Status)
