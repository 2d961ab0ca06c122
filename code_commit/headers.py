"""The values of `[headers]`: a text, a variable (`{env = "NAME"}`) or a file (`{file = "PATH"}`), and their limits.

The rules are those of RFC 9110, section 5.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from code_commit.errors import NotSetUpError
from code_commit.regex import regex
from code_commit.terminal import shown

_NAME = regex(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = regex(r"[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?")
_FRAMING = regex(
    r"(?i)accept-encoding|connection|content-(encoding|length|type)|expect|host|te|trailer|transfer-encoding|upgrade"
)
"""The connection sets these itself: they say how a message is sent."""
_SOURCES = ("env", "file")
_LONGEST = 16_384  # in bytes; servers take 8 kB of all headers, a few of them 16

Value = str | Mapping[str, str]


def check_headers(table: Mapping[str, object]) -> dict[str, Value]:
    """Return the table of `[headers]`. Raises ValueError, which quotes no value."""
    checked: dict[str, Value] = {}
    for name, value in table.items():
        if not is_name(name):
            raise ValueError(f"has {shown(name)}, which is not a header that may be set")
        if len([each for each in table if each.lower() == name.lower()]) > 1:
            raise ValueError(f"has {shown(name)} twice: upper and lower case do not matter")
        if isinstance(value, str):
            checked[name] = require_value(value, shown(name))
        elif isinstance(value, Mapping) and len(value) == 1 and (source := next(iter(value))) in _SOURCES:
            if not isinstance(value[source], str) or not value[source]:
                raise ValueError(f"has {shown(name)}, whose {source} is empty")
            checked[name] = {source: value[source]}
        else:
            raise ValueError(f'has {shown(name)}, which must be a string, {{env = "NAME"}} or {{file = "PATH"}}')
    return checked


def is_name(text: str) -> bool:
    """Tell whether a text is the name of a header that may be set."""
    return bool(_NAME.fullmatch(text)) and not _FRAMING.fullmatch(text)


def require_value(value: str, name: str) -> str:
    """Return a value that a header can carry. Raises ValueError, which does not quote it."""
    if not _VALUE.fullmatch(value) or len(value) > _LONGEST:
        raise ValueError(
            f"has {name}, whose value cannot go in a header: use one line of ASCII, without spaces at either end"
        )
    return value


def is_looked_up(value: Value) -> bool:
    """Tell whether a value is a variable's or a file's, which is a secret."""
    return not isinstance(value, str)


def file_of(value: Value) -> Path | None:
    """Return the file of a value, None where it has none."""
    return None if isinstance(value, str) or "file" not in value else absolute(value["file"])


def absolute(path: str) -> Path:
    """Return a path that a user wrote, `~` as the home; a relative one counts from nowhere and is returned as it is."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - no error


def look_up(name: str, value: Value, environment: Mapping[str, str] = os.environ) -> str:
    """Return the text of a header. Raises NotSetUpError where its variable or file has none that a header can carry."""
    if isinstance(value, str):
        return value
    where = f"[headers] {shown(name)}"
    if path := file_of(value):
        text = _read(path, where)
    elif value["env"] not in environment:
        raise NotSetUpError(f"{where}: the variable {shown(value['env'])} is not set")
    else:
        text = environment[value["env"]]
    try:
        return require_value(text, shown(name))
    except ValueError as error:
        raise NotSetUpError(f"[headers] {error}") from None


def _read(path: Path, where: str) -> str:
    from code_commit.files import explain_unread, read_regular_file

    if not path.is_absolute():
        raise NotSetUpError(f"{where}: {shown(str(path))} is a relative path: write an absolute one, or ~/...")
    try:
        mode, content = path.stat().st_mode, read_regular_file(path)
    except OSError as error:
        why = error.strerror if isinstance(error, FileNotFoundError) else explain_unread(path, shown(str(path)), error)
        raise NotSetUpError(f"{where}: {shown(str(path))}: {why}") from error
    if mode & 0o004:
        raise NotSetUpError(f"{where}: {shown(str(path))} can be read by others: chmod 600 it")
    return content.decode("utf-8-sig", "replace").rstrip("\r\n")


def secret_files(headers: Mapping[str, Value], client_key: str) -> list[Path]:
    """Return the files of headers' values and of a certificate's key, which no build may read."""
    found = [*filter(None, map(file_of, headers.values())), absolute(client_key)]
    return [path for path in found if path.is_absolute()]
