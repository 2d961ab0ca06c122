"""The words of a reply without an answer: strings under names such as `message`, at any depth; of a page its title."""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from code_commit.llm.endpoint import Endpoint
from code_commit.llm.values import member, members_of, opened, text_of
from code_commit.regex import regex
from code_commit.terminal import shown

LONGEST_MESSAGE = 600
LONGEST_HEAD = 10_000  # of a web page, in which its title is looked for
_MOST_WORDS, _DEEPEST = 20, 12

_HOLDS_WORDS = regex(
    r"(?i)(error|message|e?msg|details?|title|cause|explanation|description|(?:^|(?<!finish)(?<!stop)_)reason|^raw)s?$|^error(?!.*(code|type|id)$)"
)
CODES = ("code", "type", "status", "reason", "error_code", "status_code", "statusCode", "quotaId")
_HOLDS_PARAMETERS = ("param", "parameter", "loc")
_NO_TROUBLE = r"(?i:\s*(success(ful)?(ly)?|ok(ay)?|none|null|true|false)?[.!]?\s*)"
_SUCCESS = regex(rf"{_NO_TROUBLE}|\d+")


def is_error(event: Any) -> bool:
    """Tell whether JSON calls itself an error: a member `error` that is not empty, or a type of that name."""
    body = unwrapped(event)
    return has_error(body) or "error" in (text_of(body, "type"), text_of(body, "object"))


def has_error(body: Any) -> bool:
    """Tell whether JSON has a member `error` that says anything but success."""
    return _is_trouble(member(body, "error"))


def _is_trouble(value: Any) -> bool:
    if isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
        return any(bool(part) if isinstance(part, dict | list) else _is_trouble(part) for part in parts)
    return bool(value) and not (isinstance(value, str) and re.fullmatch(rf"0|{_NO_TROUBLE}", value[:LONGEST_HEAD]))


def has_words(body: Any) -> bool:
    """Tell whether a reply without an answer says why: it is a refusal then."""
    return bool(told(unwrapped(body)))


def said_by(body: Any) -> str:
    """Return the words of a refusal as they are."""
    return "; ".join(told(unwrapped(body)))


def members_with_words(body: Any) -> list[Any]:
    """Return the members of JSON whose names say that they hold words."""
    return [value for name, value in members_of(body).items() if _HOLDS_WORDS.search(name)]


def unwrapped(body: Any) -> Any:
    """Return the body, out of the list of one that some Google replies put it into."""
    return body[0] if isinstance(body, list) and len(body) == 1 else body


def error_message(body: Any, endpoint: Endpoint) -> str:
    """Return the API's words, an HTML page's title, or JSON without any, on one printable line: censored, shortened."""
    words = told(body) or [code for code in map(str, scalars_under(body, CODES)) if not code.isdigit()]
    words = words or [json.dumps(body, ensure_ascii=False)] * bool(members_of(body))
    line = endpoint.censor(" ".join("; ".join(words)[: 4 * LONGEST_MESSAGE].split()))
    if len(line) > LONGEST_MESSAGE:
        return shown(line[:LONGEST_MESSAGE]) + "..."
    return shown(line.removesuffix("." if not line.endswith("..") else ""))


def told(body: Any) -> list[str]:
    """Return the words of a body: those under names that hold words, else its first sentence."""
    is_chunk = isinstance(body, dict) and "choices" in body  # whose other members hold names
    return _distinct(_said_in(body)) or ([] if is_chunk else _sentences(body))


def _said_in(value: Any, depth: int = 0, *, is_said: bool = False) -> Iterator[str]:
    """Yield the words of a body: strings under names such as `message`, at any depth; of a page its title."""
    value = opened(value) if is_said else value
    if isinstance(value, str):
        if depth == 0:
            value = _words_of_page(value[:LONGEST_HEAD]) if value.lstrip()[:1] == "<" else value
        if (is_said or depth == 0) and not _SUCCESS.fullmatch(value[:LONGEST_HEAD]):
            yield value
    elif isinstance(value, list) and depth < _DEEPEST:
        for part in value:
            yield from _said_in(part, depth + 1, is_said=is_said)
    elif isinstance(value, dict) and depth < _DEEPEST:
        for name, part in value.items():
            says = _HOLDS_WORDS.search(name) is not None and not name.lower().endswith(("code", "type", "id", "url"))
            yield from _said_in(part, depth + 1, is_said=says)


def _words_of_page(page: str) -> str:
    """Return the title of a web page, if it has two words; else the first text of three or more between two tags."""
    found = re.search(r"(?is)<title>(.*?)</title>", page)
    title = found[1] if found else ""
    texts = re.findall(r">([^<>{}]+)(?=<)", page) if len(title.split()) < 2 else []
    return next((text for text in texts if len(text.split()) > 2), title)


def _sentences(value: Any, depth: int = 0) -> list[str]:
    """Return the first string of three words or more in a body, under whatever name."""
    if isinstance(value, str):
        return [value] if depth and value.strip().count(" ") > 1 else []
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    found = (_sentences(part, depth + 1) for part in parts) if depth < _DEEPEST else iter([])
    return next(filter(None, found), [])


def _distinct(words: Iterator[str]) -> list[str]:
    """Return a few of the words, sentences before single words, each once."""
    told: list[str] = []
    for text in sorted(islice(words, _MOST_WORDS), key=lambda text: " " not in text.strip()):
        if not any(text in other for other in told) and (" " in text.strip() or not told):
            told.append(text)
    return told


def named_parameters(body: Any) -> frozenset[str]:
    """Return the parameters that a refusal names in members of their own."""
    names = (str(name) for name in scalars_under(unwrapped(body), _HOLDS_PARAMETERS))
    return frozenset(name for name in names if not _SUCCESS.fullmatch(name))  # such as "None"


def scalars_under(body: Any, names: Iterable[str], depth: int = 0) -> Iterator[str | int]:
    """Yield the strings and numbers under these names, at any depth, also those in lists there."""
    if isinstance(body, list) and depth < _DEEPEST:
        for part in body:
            yield from scalars_under(part, names, depth + 1)
    if not isinstance(body, dict) or depth >= _DEEPEST:
        return
    for name in names:
        found = body.get(name)
        for value in found if isinstance(found, list) else [found]:
            if isinstance(value, str | int) and not isinstance(value, bool) and value:
                yield value
    for part in body.values():
        yield from scalars_under(opened(part), names, depth + 1)
