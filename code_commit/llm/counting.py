"""Ask the provider how many tokens a prompt has; it costs nothing.

Sources: the vendors' references of
`POST /responses/input_tokens`, `POST /messages/count_tokens` and `POST /models/MODEL:countTokens`.
"""

from typing import Any
from urllib.parse import quote

from code_commit.errors import LLMError
from code_commit.exchange import Prompt
from code_commit.llm.call import Call
from code_commit.llm.connection import PassingFailure
from code_commit.llm.json_values import count_of
from code_commit.model_choice import ModelChoice


def count_tokens(call: Call, choice: ModelChoice, prompt: Prompt) -> int | None:
    """Return the provider's own count of the prompt, None where it has no endpoint for it or does not answer."""
    question = _question(choice, prompt)
    if question is None:
        return None
    path, body = question
    try:
        reply = call.connection.send("POST", path, body, call.pace.read)
    except (LLMError, PassingFailure):
        return None
    if not 200 <= reply.status < 300:
        return None
    return count_of(reply.body, "input_tokens") or count_of(reply.body, "totalTokens") or None


def _question(choice: ModelChoice, prompt: Prompt) -> tuple[str, dict[str, Any]] | None:
    user = {"role": "user", "content": prompt.user}
    if choice.provider == "openai":
        return "/responses/input_tokens", {"model": choice.name, "instructions": prompt.system, "input": [user]}
    if choice.provider == "anthropic":
        return "/messages/count_tokens", {"model": choice.name, "system": prompt.system, "messages": [user]}
    if choice.provider == "gemini":
        contents = [{"role": "user", "parts": [{"text": prompt.text}]}]
        return f"/models/{quote(choice.name, safe='')}:countTokens", {"contents": contents}
    return None
