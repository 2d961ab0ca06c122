"""Recorded responses: the Nth call of a run gets N-response.txt, and no network is loaded for it."""

import subprocess
import sys

import pytest
from asking import PROMPT, Listener

from code_commit.errors import LLMError
from code_commit.llm import open_llm
from code_commit.llm.ledger import Ledger
from code_commit.llm.vendor import LlmConfig, ModelChoice
from code_commit.project import Project
from code_commit.settings import Settings


def test_the_nth_call_gets_the_nth_response(tmp_path):
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "1-response.txt").write_bytes("one\r\nzwei ü\n".encode())
    (folder / "2-response.txt").write_bytes(b" \n")
    listener = Listener()
    with open_llm(LlmConfig(ModelChoice("replay", "a folder"), None, Settings()), Project(tmp_path), Ledger()) as llm:
        first = llm.complete(PROMPT, listener)
        assert (first.text, first.incomplete, first.settlement.cost_usd) == ("one\r\nzwei ü\n", None, 0.0)
        assert llm.complete(PROMPT, listener).incomplete == "empty"
        with pytest.raises(
            LLMError, match=r"no recorded response .*a folder/3-response.txt: No such file or directory; put one there"
        ):
            llm.complete(PROMPT, listener)
    assert listener.steps == ["requested", "replied", "requested", "replied", "requested"]


def test_an_absolute_folder_and_files_that_cannot_be_used(tmp_path):
    (tmp_path / "1-response.txt").write_bytes(b"\xff")
    (tmp_path / "2-response.txt").mkdir()
    with open_llm(
        LlmConfig(ModelChoice("replay", str(tmp_path)), None, Settings()), Project(tmp_path / "else"), Ledger()
    ) as llm:
        with pytest.raises(LLMError, match=r"1-response.txt is not UTF-8"):
            llm.complete(PROMPT, Listener())
        with pytest.raises(LLMError, match=r"2-response.txt: Is a directory"):
            llm.complete(PROMPT, Listener())


def test_neither_importing_nor_replaying_loads_what_only_the_network_needs(tmp_path):
    (tmp_path / "1-response.txt").write_text("x")
    program = f"""
import sys
from pathlib import Path
from code_commit.llm import models, open_llm
from code_commit.settings import Settings
from code_commit.llm.ledger import Ledger
from code_commit.llm.vendor import LlmConfig, ModelChoice
from code_commit.exchange import Prompt
from code_commit.project import Project
class Listener:
    def __getattr__(self, name):
        return lambda *_: None
choice = ModelChoice("replay", {str(tmp_path)!r})
assert models.check_base_url(ModelChoice("openai", "m"), Settings())
assert models.context_window(ModelChoice("openai", "gpt-6.2-sol"), Settings()) == 1_050_000
with open_llm(LlmConfig(choice, None, Settings()), Project(Path("/")), Ledger()) as one:
    assert one.complete(Prompt("", "", ""), Listener()).text == "x"
print(sorted({{"httpx", "httpcore", "pydantic", "ssl", "email", "urllib.request"}} & set(sys.modules)))
"""
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert finished.stdout == "[]\n"
