"""The official SDKs' types, made strict: nested iterables are looked into, unknown members are errors."""

import collections.abc
import types
import typing
from typing import Any

import typing_extensions as extensions
from pydantic import ConfigDict, TypeAdapter

_strict: dict[Any, Any] = {}


def check(kind: Any, body: Any) -> None:
    """Fail unless the body is what the SDK's type describes, with nothing else in it."""
    TypeAdapter(strict(kind)).validate_python(body)


def strict(kind: Any) -> Any:
    if extensions.is_typeddict(kind):
        return _strict_typed_dict(kind)
    origin, arguments = extensions.get_origin(kind), extensions.get_args(kind)
    if arguments and origin is not typing.Literal:
        return _strict_generic(kind, origin, arguments)
    return kind


def _strict_generic(kind: Any, origin: Any, arguments: tuple[Any, ...]) -> Any:
    if origin is extensions.Annotated:
        return strict(arguments[0])
    if origin in (collections.abc.Iterable, collections.abc.Sequence, list):
        return list[strict(arguments[0])]
    if origin in (typing.Union, types.UnionType):
        return typing.Union[tuple(strict(argument) for argument in arguments)]  # noqa: UP007 - made at run time
    if origin is dict:
        return dict[arguments[0], strict(arguments[1])]
    return Any if origin is typing.IO or "PathLike" in str(kind) else kind


def _strict_typed_dict(kind: Any) -> Any:
    if kind not in _strict:
        name = f"Strict{kind.__name__}{len(_strict)}"
        _strict[kind] = extensions.TypedDict(name, {}, total=False)
        members = {}
        for member, hint in extensions.get_type_hints(kind, include_extras=True).items():
            wrapped = extensions.get_origin(hint) in (extensions.Required, extensions.NotRequired)
            inner = extensions.get_args(hint)[0] if wrapped else hint
            need = extensions.Required if member in kind.__required_keys__ else extensions.NotRequired
            members[member] = need[strict(inner)]
        _strict[kind] = extensions.TypedDict(name, members, total=False)
        _strict[kind].__pydantic_config__ = ConfigDict(extra="forbid")
    return _strict[kind]
