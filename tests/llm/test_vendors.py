"""What goes to the vendors' own addresses, with nothing sent: where the request alone matters, respx answers it."""

import json

import pytest
import respx
from asking import KEY, PROMPT, ROOT

from code_commit.keys import ApiKey
from code_commit.llm import open_llm
from code_commit.model_choice import ModelChoice
from code_commit.project import Project
from code_commit.settings import Settings

VENDORS = {
    "openai": ("gpt-6.2-sol", "https://api.openai.com/v1/responses", "authorization", f"Bearer {KEY}"),
    "anthropic": ("claude-opus-5-5", "https://api.anthropic.com/v1/messages", "authorization", f"Bearer {KEY}"),
    "gemini": (
        "gemini-4-argon",
        "https://generativelanguage.googleapis.com/v1beta/interactions",
        "x-goog-api-key",
        KEY,
    ),
}
ANSWERS = {
    "openai": {"id": "resp_1", "status": "completed", "output": [{"type": "message", "content": [{"type": "output_text", "text": "ok"}]}]},
    "anthropic": {"type": "message", "content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn", "usage": {}},
    "gemini": {"id": "i", "status": "completed", "steps": [{"type": "model_output", "content": [{"type": "text", "text": "ok"}]}]},
}  # fmt: skip


class Deaf:
    """A listener that does not listen."""

    def __getattr__(self, name):
        return lambda *arguments: None


@pytest.mark.parametrize("provider", VENDORS)
def test_the_vendor_is_asked_at_its_own_address_with_the_key_in_one_header(provider):
    model, url, header, value = VENDORS[provider]
    with respx.mock(using="httpcore") as router:
        route = router.post(url).respond(json=ANSWERS[provider])
        with open_llm(ModelChoice(provider, model), ApiKey(provider, KEY, "a test"), Settings(), Project(ROOT)) as llm:
            assert llm.complete(PROMPT, Deaf()).text == "ok"
    (call,) = route.calls
    assert call.request.headers[header] == value
    assert KEY not in str(call.request.url)
    assert KEY not in json.dumps(json.loads(call.request.content))
    assert [name for name, text in call.request.headers.items() if KEY in text] == [header]
