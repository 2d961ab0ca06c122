"""Reading JSON that may be anything: what is missing or of another type comes back empty, nothing is raised."""

import json
from collections.abc import Iterable
from typing import Any


def parse_json(data: bytes | str) -> Any:
    """Return the parsed JSON. Raises ValueError where it is none, or nested so deep that nobody means it."""
    try:
        value = json.loads(data)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    level = [value]
    for _ in range(_DEEPEST):
        level = [inner for outer in level if isinstance(outer, dict | list) for inner in _inner(outer)]
        if not level:
            return value
    raise ValueError("nested too deep")


_DEEPEST = 100
"""What walks through a reply later does so by recursion; no API nests a tenth of that."""


def _inner(container: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else container


def member(value: object, *names: str) -> Any:
    """Return the member that is reached by the names, None where there is none."""
    for name in names:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def text_of(value: object, *names: str) -> str:
    """Return the member when it is a text, else an empty one."""
    found = member(value, *names)
    return found if isinstance(found, str) else ""


def list_of(value: object, *names: str) -> list[Any]:
    """Return the member when it is a list, else an empty one."""
    found = member(value, *names)
    return found if isinstance(found, list) else []


def count_of(value: object, *names: str) -> int:
    """Return the member when it is a number of things, else 0."""
    found = member(value, *names)
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else 0


def whole_characters(value: Any) -> Any:
    """Return JSON-like data in which halves of a UTF-16 pair that met in joining are one character.

    A half that stays alone becomes U+FFFD: nothing that writes UTF-8 could take it.
    """
    if isinstance(value, str):
        if not has_half_characters(value):
            return value
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {whole_characters(name): whole_characters(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [whole_characters(inner) for inner in value]
    return value


def has_half_characters(text: str) -> bool:
    """Tell whether the text holds halves of a UTF-16 pair, which an escape in JSON can make."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
