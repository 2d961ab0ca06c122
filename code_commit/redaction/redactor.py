"""The Redactor: what the steps of the tool hold."""

from collections.abc import Callable, Iterable
from typing import Any

from code_commit.json_documents import json_document
from code_commit.redaction.scan import Scan
from code_commit.redaction.spellings import Span
from code_commit.redaction.stream import RedactingStream, masked


class Redactor:
    """Censors a set of API keys. Immutable, so every sink of a run can share it."""

    def __init__(self, secrets: Iterable[str]) -> None:
        keys = sorted({secret.encode() for secret in secrets if secret}, key=len, reverse=True)
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
        return [] if self._scan is None else self._scan.spans(data)
