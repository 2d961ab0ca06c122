"""`code-commit log --html`: one run as one page that holds all it needs, for whoever reviews it.

The page runs no script and uses no style but its own, named by their hashes in its content security policy.
Everything from the log is foreign text: it is escaped by the template, or by the modules that make markup of it.
"""

import base64
import math
import os
import tempfile
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any

from code_commit.commands.page.colours import style_rules
from code_commit.commands.page.logged_run import LoggedRun
from code_commit.errors import NotSetUpError
from code_commit.run_record import load_run_record
from code_commit.terminal import shown


def render_page(logged: LoggedRun, start: Path) -> bytes:
    """Return the page of a run; its links begin at the folder `start`."""
    from markupsafe import Markup

    from code_commit.commands.page.view import run_view

    record = load_run_record(logged.redactor.redact_json(logged.record))
    run = run_view(replace(logged, record=record), start)
    style = _resource("page.css") + style_rules(run.terminal.colours)
    script = _resource("page.js")
    page = _template().render(
        run=run,
        record=run.record,
        style=Markup(style),  # noqa: S704 - our own, and no foreign text in it
        script=Markup(script),  # noqa: S704 - the same
        policy=_policy(style, script),
    )
    return logged.redactor.redact(page.encode("utf-8", "replace"))


def write_page(path: Path, page: bytes) -> Path:
    """Write the page, whole or not at all, readable by its owner alone. Raises NotSetUpError.

    A link is followed; what is there and no regular file is left alone.
    """
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():
            raise NotSetUpError(f"{path} is no regular file: name another, or - for standard output")
        descriptor, name = tempfile.mkstemp(prefix=".code-commit-page-", dir=target.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(page)
                file.flush()
                os.fsync(descriptor)
            Path(name).replace(target)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise NotSetUpError(f"the page {path} cannot be written: {error.strerror}") from error
    return target


def _resource(name: str) -> str:
    return (resources.files(__name__) / name).read_text("utf-8")


def _template() -> Any:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_one_line
    )
    environment.filters["count"] = "{:,}".format
    environment.filters["seconds"] = _seconds
    environment.filters["dollars"] = _dollars
    return environment.from_string(_resource("page.html.j2"))


def _one_line(value: object) -> object:
    """What the template puts out: characters that cannot be seen as their escape, cut where a damaged record has no
    end of them; markup of our own as it is.
    """
    from markupsafe import Markup

    return shown(value[:_MOST_CHARACTERS]) if isinstance(value, str) and not isinstance(value, Markup) else value


_MOST_CHARACTERS = 20_000


def _dollars(cost: float | None) -> str:
    if cost is None:
        return "not known"
    return f"${cost:.4f}" if cost else "$0"


def _seconds(seconds: float | None) -> str:
    if seconds is None or not math.isfinite(seconds):
        return "-"
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 1 else f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"


def _policy(style: str, script: str) -> str:
    sources = [f"{kind}-src 'sha256-{_hash(text)}'" for kind, text in (("style", style), ("script", script))]
    return "; ".join(["default-src 'none'", *sources, "base-uri 'none'", "form-action 'none'"])


def _hash(text: str) -> str:
    return base64.b64encode(sha256(text.encode()).digest()).decode()
