"""N-response.json: the reply to a call in the run's log, from which a resumed run takes an answer again."""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from code_commit.errors import LogError
from code_commit.files import KeptRoom, read_regular_file
from code_commit.redaction import Redactor

_TIME = "totalResponseTime"  # in milliseconds; the specification's name
_LONGEST = 1 << 53  # in milliseconds; a float is exact up to it


class LoggedReply(NamedTuple):
    """A reply, parsed, and the seconds that it took."""

    body: Mapping[str, Any]
    seconds: float


class Replies:
    """The replies in a log folder. The disk has room for the next one before it is asked for."""

    def __init__(self, folder: Path, redactor: Redactor) -> None:
        self._folder, self._redactor = folder, redactor
        self._room: KeptRoom | None = None

    def make_room(self, number: int, size: int) -> None:
        """Keep room on the disk for the reply of an attempt, of so many bytes. Raises LogError."""
        path = self._file(number)
        self._room = KeptRoom(path)
        try:
            self._room.keep(size)
        except OSError as error:
            self.release()
            raise LogError(path, error, "made large enough for an answer, so none was requested") from error

    def release(self) -> None:
        """Give up the room that no reply took."""
        if self._room:
            with suppress(OSError):
                self._room.release()

    def write(self, number: int, reply: Mapping[str, Any], seconds: float) -> None:
        """Write the reply of an attempt, durably if room was made for it. Raises LogError."""
        path = self._file(number)
        data = self._redactor.redact_json({**reply, _TIME: round(seconds * 1000)})
        try:
            (self._room or KeptRoom(path)).write(data, sync=self._room is not None)
        except OSError as error:
            raise LogError(path, error) from error

    def _file(self, number: int) -> Path:
        return _reply_file(self._folder, number)


def read_reply(folder: Path, number: int) -> LoggedReply | None:
    """Return the reply of an attempt, None if the log folder has none that is whole. Raises LogError."""
    path = _reply_file(folder, number)
    try:
        reply = json.loads(read_regular_file(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LogError(path, error, "read") from error
    except (ValueError, RecursionError):  # a power cut left less of it
        return None
    if not isinstance(reply, dict):
        return None
    milliseconds = reply.pop(_TIME, 0)
    is_time = isinstance(milliseconds, int) and 0 <= milliseconds <= _LONGEST
    return LoggedReply(reply, milliseconds / 1000 if is_time else 0.0)


def _reply_file(folder: Path, number: int) -> Path:
    return folder / f"{number}-response.json"
