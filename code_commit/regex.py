"""Regular expressions that are compiled when they are first used: of those in its modules a run needs one in five."""

import re
from typing import Any, AnyStr, cast


def regex(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return the pattern that `re.compile` returns, for a module's constant."""
    return cast("re.Pattern[AnyStr]", _Late(pattern, flags))


class _Late:
    """Stands for a pattern; its first use compiles it."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        """Keep the compiled pattern's method, or another attribute, as one of its own."""
        found = getattr(re.compile(self.pattern, self._flags), name)
        setattr(self, name, found)
        return found
