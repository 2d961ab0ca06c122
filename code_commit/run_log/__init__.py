"""The run's log: one folder per run under agent-config/logs, with the numbered files and run.json.

The number is the LLM call's: 1 is the initial query, 2 and up the repairs. Every byte passes the Redactor on its way
to a file; files are 0600, folders 0700. run.json is rewritten atomically after every step.
"""

from code_commit.run_log.attempt_log import AttemptLog
from code_commit.run_log.opening import open_run_log, reopen_run_log
from code_commit.run_log.run_log import RunLog

__all__ = ["AttemptLog", "RunLog", "open_run_log", "reopen_run_log"]
