"""The Redactor: what the steps of the tool hold."""

from collections.abc import Callable, Iterable
from typing import Any, Self

from code_commit.json_documents import json_document
from code_commit.redaction.known_text import KnownText
from code_commit.redaction.scan import Scan
from code_commit.redaction.spellings import Span
from code_commit.redaction.stream import RedactingStream, masked


class Redactor:
    """Censors a set of API keys. Immutable, so every sink of a run can share it."""

    def __init__(self, secrets: Iterable[str], known: KnownText | None = None) -> None:
        self._secrets = tuple(secrets)
        self._known = known
        keys = sorted({secret.encode() for secret in self._secrets if secret}, key=len, reverse=True)
        self._scan = Scan(keys) if keys else None

    def redact(self, data: bytes) -> bytes:
        """Return the data with every key censored."""
        return masked(data, self.spans(data), 0, len(data))

    def redact_text(self, text: str) -> str:
        """Return the text with every key censored."""
        if self._scan is None:
            return text
        data = text.encode("utf-8", "surrogatepass")
        spans = self.spans(data)
        return masked(data, spans, 0, len(data)).decode("utf-8", "surrogatepass") if spans else text

    def redact_json(self, value: Any) -> bytes:
        """Return JSON-like data as a JSON document with every key censored, in names of members too."""
        document = json_document(value)
        return json_document(self._redact_value(value)) if self.spans(document) else document

    def _redact_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.redact_text(value)
        if isinstance(value, dict):
            return {self._redact_value(name): self._redact_value(member) for name, member in value.items()}
        if isinstance(value, list | tuple):
            return [self._redact_value(member) for member in value]
        return value

    def reveals_key(self, text: str) -> bool:
        """Tell whether a key stands in the text, in any spelling."""
        return self._scan is not None and bool(self.spans(text.encode("utf-8", "surrogatepass")))

    def stream(self, write: Callable[[bytes], object]) -> RedactingStream:
        """Return a sink for data in pieces, which hands the censored data on to `write`."""
        return RedactingStream(self._scan, write)

    def spans(self, data: bytes) -> list[Span]:
        """Return where keys stand: (start, end, mask), in order."""
        if self._scan is None:
            return []
        ends = self._known.ends_of(data) if self._known else None
        if ends is not None and not any(map(self._scan.spans, ends)):
            return []
        return self._scan.spans(data)

    def knowing(self, text: str) -> Self:
        """Return one that does not search the text again wherever it stands whole; the same where a key is in it."""
        known = KnownText(text)
        return self if any(map(self.spans, known.forms())) else type(self)(self._secrets, known)
