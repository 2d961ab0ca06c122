"""The LLM: a prompt goes out, a response comes back, whichever API is asked.

`open_llm` gives the LLM of a run. Importing this package loads neither httpx nor pydantic.
"""

from collections.abc import Sequence
from typing import Self

from code_commit import __version__
from code_commit.errors import LLMError, NotSetUpError
from code_commit.exchange import ExchangeListener, Prompt, RequestBody, Response
from code_commit.llm.call import Call
from code_commit.llm.http import Connection, Endpoint, PassingFailure, Reply, Timing
from code_commit.llm.jobs import fetch_job, run_job
from code_commit.llm.models import VENDORS, Budget, check_base_url, cost_of
from code_commit.llm.replay import ReplayLLM
from code_commit.llm.vendor import ApiKey, ModelChoice
from code_commit.project import Project
from code_commit.redaction import Redactor, whole_characters
from code_commit.settings import Settings


class NetworkLLM:
    """Asks an API over HTTP: one client for a whole run, one `Call` for each `complete`."""

    def __init__(
        self,
        choice: ModelChoice,
        key: ApiKey | None,
        settings: Settings,
        project: Project,
        timing: Timing | None = None,
    ) -> None:
        vendor = VENDORS[choice.provider]
        if vendor.api is None:
            raise NotSetUpError(f"{vendor.name}: is not asked over HTTP")
        self.budget = Budget(choice, settings)
        self._choice = choice
        self._api = vendor.api
        self._endpoint = Endpoint(
            model=choice.name,
            base_url=check_base_url(choice, settings),
            settings=settings,
            root=project.root,
            key_source=key.source if key else "",
            censor=Redactor([key.value] if key else []).redact_cut,
        )
        headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "User-Agent": f"code-commit/{__version__} (python httpx)",
        }
        headers |= vendor.headers(key.value if key else "", settings)
        self._connection = Connection(self._endpoint, headers, timing or Timing())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def complete(self, prompt: Prompt, listener: ExchangeListener) -> Response:
        """Ask, and ask again while what fails can pass. Raises LLMError, without the key in it.

        A response that the API does not call complete comes back with `incomplete` set.
        """
        self.budget.check(prompt)
        body = RequestBody(self._api.request_body(self._endpoint, prompt))
        listener.requested(self._endpoint.base_url + self._api.path, self._connection.headers, body)
        call = Call(self._connection, listener, body)
        return self._finished(call, *call.retried(lambda: self._ask(call)))

    def _ask(self, call: Call) -> tuple[Reply, Response]:
        path, assemble = self._api.path, self._api.assemble
        reply = call.streamed(path, assemble) if assemble else run_job(call, path)
        return reply, self._api.read(call, reply)

    def fetch(self, job_id: str, listener: ExchangeListener) -> Response:
        """Wait for the answer of a background job of an earlier run. Raises LLMError, without the key in it."""
        call = Call(self._connection, listener)
        try:
            reply = fetch_job(call, self._api.path, job_id)
            return self._finished(call, reply, self._api.read(call, reply))
        except PassingFailure as failure:
            raise LLMError(failure.reason) from None

    def _finished(self, call: Call, reply: Reply, response: Response) -> Response:
        call.replied(reply)
        cost = cost_of(self._choice, self._endpoint.settings, response.usage)
        self.budget.charge(cost)
        text = whole_characters(response.text)
        return response._replace(text=text, incomplete=_flaw(response, text), cost_usd=cost)


def _flaw(response: Response, text: str) -> str | None:
    """Return why the response cannot be used, in words that follow "the response is", None when it can."""
    if response.incomplete is not None:
        return response.incomplete
    if not text.strip():
        return "empty"
    if text.count("\ufffd") > response.text.count("\ufffd"):
        return "damaged: it holds half of a character"
    return None


LLM = NetworkLLM | ReplayLLM
"""What a run asks. Use it as a context manager: the end closes its connection."""


def open_llm(
    choice: ModelChoice, key: ApiKey | None, settings: Settings, project: Project, earlier_costs: Sequence[float] = ()
) -> LLM:
    """Return the LLM that is to be asked; nothing is sent yet. Raises NotSetUpError.

    `earlier_costs` are those of the calls that were answered before, in US dollars.
    """
    if VENDORS[choice.provider].api is None:
        return ReplayLLM(choice, project, len(earlier_costs))
    llm = NetworkLLM(choice, key, settings, project)
    llm.budget.charge(sum(earlier_costs))
    return llm
