"""An LLM that is asked over HTTP: one client for a whole run, one `Call` for each `complete`."""

import re
from collections.abc import Callable
from types import TracebackType
from typing import Self

from code_commit.errors import LLMError, NotSetUpError
from code_commit.exchange import ExchangeListener, Prompt, RequestBody, Response
from code_commit.keys import ApiKey
from code_commit.llm.answers import API, Answer, JobAPI
from code_commit.llm.budget import Budget
from code_commit.llm.call import Call
from code_commit.llm.connection import Connection, PassingFailure
from code_commit.llm.endpoint import check_base_url
from code_commit.llm.pace import Pace
from code_commit.llm.prices import cost_of
from code_commit.llm.refusals import Subject
from code_commit.model_choice import ModelChoice
from code_commit.project import Project
from code_commit.redaction import Redactor
from code_commit.settings import Settings
from code_commit.version import __version__


class NetworkLLM:
    """Asks the chosen API. Use it as a context manager: the end closes its connection."""

    def __init__(
        self, choice: ModelChoice, key: ApiKey | None, settings: Settings, project: Project, pace: Pace | None = None
    ) -> None:
        self.base_url = check_base_url(choice, settings)
        self.budget = Budget(choice, settings)
        self._choice = choice
        self._settings = settings
        censor = Redactor([key.value] if key else []).redact_cut
        self._api = make_api(choice, settings, project, self.base_url)
        self._connection = Connection(self.base_url, make_headers(choice, key, settings), pace or Pace())
        source = key.source if key else ""
        self._subject = Subject(choice.name, self.base_url, self._connection.host, source, censor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._connection.close()

    def complete(self, prompt: Prompt, listener: ExchangeListener) -> Response:
        """Ask, and ask again while what fails can pass. Raises LLMError, without the key in it."""
        return self._censored(lambda: self._complete(prompt, listener))

    def fetch(self, job_id: str, listener: ExchangeListener) -> Response:
        """Wait for the answer of a background job of an earlier run. Raises LLMError, without the key in it."""
        return self._censored(lambda: self._fetch(job_id, listener))

    def _censored(self, ask: Callable[[], Response]) -> Response:
        try:
            return ask()
        except LLMError as error:
            message = self._subject.censor(str(error))
        raise LLMError(message)

    def _fetch(self, job_id: str, listener: ExchangeListener) -> Response:
        if not isinstance(self._api, JobAPI):
            raise LLMError(f"{self._subject.host} keeps no answers")
        call = Call(self._connection, self._subject, listener, self._settings.llm_timeout)
        try:
            return self._finished(call, self._api.fetch(call, job_id))
        except PassingFailure as failure:
            raise LLMError(failure.reason) from None

    def _complete(self, prompt: Prompt, listener: ExchangeListener) -> Response:
        self.budget.check(prompt, self._count(prompt, listener) if self.budget.has_limit else None)
        body = RequestBody(self._api.request_body(prompt))
        listener.requested(self.base_url + self._api.path, self._connection.headers, body)
        call = Call(self._connection, self._subject, listener, self._settings.llm_timeout)
        answer = call.retried(lambda: self._api.ask(call, body))
        return self._finished(call, answer)

    def _count(self, prompt: Prompt, listener: ExchangeListener) -> int | None:
        from code_commit.llm.counting import count_tokens

        call = Call(self._connection, self._subject, listener, self._settings.llm_timeout)
        return count_tokens(call, self._choice, prompt)

    def _finished(self, call: Call, answer: Answer) -> Response:
        call.finished(answer.status, answer.headers, answer.body)
        response = self._response(answer)
        self.budget.charge(response.cost_usd)
        return response

    def _response(self, answer: Answer) -> Response:
        return Response(
            text=answer.whole_text,
            finish_reason=answer.finish_reason,
            incomplete=answer.flaw,
            request_id=answer.request_id,
            usage=answer.usage,
            cost_usd=cost_of(self._choice, self._settings, answer.usage),
        )


def make_headers(choice: ModelChoice, key: ApiKey | None, settings: Settings) -> dict[str, str]:
    """Return what every request carries; the key stands in a header and nowhere else. Raises NotSetUpError."""
    headers = {
        "Accept": "application/json",
        "Content-Type": "application/json",
        "User-Agent": f"code-commit/{__version__} (python httpx)",
    }
    if choice.provider == "anthropic":
        if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", settings.anthropic_version):
            raise NotSetUpError("anthropic_version must be a day such as 2026-10-21")
        headers["anthropic-version"] = settings.anthropic_version
    if key is not None and choice.provider == "gemini":
        headers["x-goog-api-key"] = key.value
    elif key is not None:
        headers["Authorization"] = f"Bearer {key.value}"
    return headers


def make_api(choice: ModelChoice, settings: Settings, project: Project, base_url: str) -> API:
    """Return the way in which the provider is asked."""
    if choice.provider == "openai":
        from code_commit.llm.openai import ResponsesAPI

        return ResponsesAPI(choice, settings, project.root)
    if choice.provider == "anthropic":
        from code_commit.llm.anthropic import MessagesAPI

        return MessagesAPI(choice, settings)
    if choice.provider == "gemini":
        from code_commit.llm.gemini import InteractionsAPI

        return InteractionsAPI(choice, settings)
    from code_commit.llm.chat import ChatAPI

    return ChatAPI(choice, settings, base_url)
