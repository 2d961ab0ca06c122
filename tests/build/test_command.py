"""What build.sh sees of the environment, and what other processes of the user can learn from the tool."""

import ctypes
import os
import resource
from pathlib import Path

import pytest
from build_watch import as_user

from code_commit.build import build_environment, harden_process
from code_commit.llm.keys import KEY_VARIABLES

KEY = "sk-test-0123456789abcdef"


@pytest.mark.parametrize(
    ("name", "value", "stays"),
    [
        ("PATH", "/bin", True),
        ("EMPTY", "", True),
        ("OTHER_API_KEY", "another secret of the user's", True),
        ("GEMINI_API_KEY", KEY, False),
        ("FOO", KEY, False),
        ("FOO", f"Bearer {KEY}", False),
        ("FOO", f"--key={KEY} --more", False),
        (f"X_{KEY}", "1", False),
        ("FOO", KEY[:-1], True),
        ("CODE_COMMIT_MODEL", "gemini:x", False),
        ("CODE_COMMIT_CHAT_API_KEY", "anything", False),
        ("CODE_COMMIT_", "x", False),
        ("CODE_COMMITTER", "me", True),
        *((variable, "an unused key", False) for variable in KEY_VARIABLES.values()),
        *((variable, "", False) for variable in KEY_VARIABLES.values()),
    ],
)
def test_keys_and_settings_go_by_name_and_by_value(name, value, stays):
    cleaned = build_environment({name: value, "HOME": "/root"}, [KEY], 2, "2026-11-21-19-51-35")
    assert (name in cleaned) is stays
    assert cleaned["HOME"] == "/root"


def test_the_value_of_an_unused_key_variable_goes_under_other_names_too():
    environment = {"OPENAI_API_KEY": "sk-unused-but-secret", "COPY": "x sk-unused-but-secret", "WORD": "secret"}
    assert set(build_environment(environment, [], 1, "run")) == {"WORD", "CODE_COMMIT_ATTEMPT", "CODE_COMMIT_RUN"}


def test_a_short_word_in_a_key_variable_takes_no_other_variable_along():
    cleaned = build_environment({"OPENAI_API_KEY": "/", "PATH": "/bin"}, [], 1, "run")
    assert cleaned["PATH"] == "/bin"


def test_the_attempt_and_the_run_are_named():
    environment = {"CODE_COMMIT_ATTEMPT": "99", "CODE_COMMIT_RUN": "outer"}
    cleaned = build_environment(environment, [], 3, "2026-11-21-19-51-35-committing-code")
    assert cleaned == {"CODE_COMMIT_ATTEMPT": "3", "CODE_COMMIT_RUN": "2026-11-21-19-51-35-committing-code"}


def test_the_environment_given_is_not_changed():
    environment = {"FOO": KEY}
    build_environment(environment, [KEY], 1, "run")
    assert environment == {"FOO": KEY}


def test_the_build_has_this_environment_and_no_other(build):
    environment = build_environment({"PATH": "/usr/bin:/bin", "ODD": "a\nb\udcff"}, [KEY], 2, "run")
    built = build("#!/usr/bin/env -S sh\nenv -0 | sort -z | tr '\\0' ';'\n", environment=environment)
    assert [word for word in built.output.split(";") if not word.startswith(("PWD=", "_=", "OLDPWD=", "SHLVL="))] == [
        "CODE_COMMIT_ATTEMPT=2",
        "CODE_COMMIT_RUN=run",
        "ODD=a\nb\ufffd",
        "PATH=/usr/bin:/bin",
        "",
    ]


PR_GET_DUMPABLE = 3


def state():
    limits = resource.getrlimit(resource.RLIMIT_CORE)
    return ctypes.CDLL(None).prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), limits[0]


def test_a_hardened_process_is_not_dumpable_and_writes_no_core_file_whatever_the_limit_for_builds_is():
    def work():
        ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
        before = state()
        hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
        limits = resource.getrlimit(resource.RLIMIT_CORE)
        harden_process()
        child = os.fork()
        if child == 0:
            os.abort()
        wrote_core = os.WCOREDUMP(os.waitpid(child, 0)[1])
        return before[0], state()[0], wrote_core, resource.getrlimit(resource.RLIMIT_CORE) == limits

    assert as_user(os.geteuid(), work) == (1, 0, False, True)


@pytest.mark.root
def test_another_process_of_the_user_cannot_read_a_hardened_one():
    def work():
        ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
        tool = os.getpid()

        def readable():
            child = os.fork()
            if child == 0:
                try:
                    Path(f"/proc/{tool}/environ").read_bytes()
                except OSError:
                    os._exit(1)
                os._exit(0)
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

        before = readable()
        harden_process()
        return before, readable()

    assert as_user(65534, work) == (True, False)
