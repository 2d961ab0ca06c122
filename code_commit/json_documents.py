"""JSON as the log has it: lines that a person can read, written as fast as the machine reads them."""

import dataclasses
import json
import math
from typing import Any

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def plain(value: Any) -> Any:
    """Return the same in dicts and lists, dataclasses as dicts; `dataclasses.asdict` would copy every string."""
    if hasattr(value, "__dataclass_fields__"):  # which has the class variables, too
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [plain(member) for member in value]
    return value


def json_document(value: Any) -> bytes:
    """Return plain data as a JSON document: what holds no further list or object is one line of it."""
    return _written(value, "").encode("utf-8", "backslashreplace") + b"\n"


def _written(value: Any, indent: str) -> str:
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    if not any(isinstance(member, dict | list | tuple) for member in members):
        return _on_one_line(value)
    inner = indent + "  "
    if isinstance(value, dict):
        rows = [f"{inner}{_on_one_line(str(name))}: {_written(member, inner)}" for name, member in value.items()]
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    return "[\n" + ",\n".join(f"{inner}{_written(member, inner)}" for member in value) + f"\n{indent}]"


def _on_one_line(value: Any) -> str:
    """Write what holds no further list or object.

    Python reads `NaN` and `1e999` in an API's reply, but JSON (RFC 8259) has no such numbers: they become texts.
    """
    try:
        return _encode(value)
    except ValueError:
        return _encode(_finite(value))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(member) for member in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
