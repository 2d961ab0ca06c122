"""`code-commit log --html`, `--open` and `--markdown`: a run for its reviewer, as one page or as Markdown.

The page runs no script and uses no style but its own, named by their hashes in its content security policy.
Everything from the log is foreign text: it is escaped by the template, or by the modules that make markup of it.
"""

import base64
import os
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from code_commit.commands.page.logged_run import LoggedRun
from code_commit.errors import NotSetUpError
from code_commit.files import NotAFileError, read_regular_file, replacing
from code_commit.runs.words import choice_in_words, count, dollars, done_by_build, duration, rewritten_by_build
from code_commit.terminal import shown

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

PAGE = "page.html"  # in the run's log folder, where no other file was asked for
BEGINNING = b"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-"""
"""The beginning of every page: a file without it is not ours."""


def write_page(logged: LoggedRun, path: Path) -> Path:
    """Write the page of a run, and return its path.

    Raises NotSetUpError if the file cannot be written, or exists and is not a page of a run.
    """
    target = Path(os.path.realpath(path))
    try:
        there = read_regular_file(target) if target.exists() else b""
        if there and not there.startswith(BEGINNING):
            raise NotSetUpError(f"{path} exists and is not a page of a run; name another file, or remove it")
        with replacing(target) as file:
            file.write(render_page(logged, target.parent))
    except OSError as error:
        advice = "; name a file" if isinstance(error, NotAFileError) else ""
        if isinstance(error, FileNotFoundError):
            advice = f"; create {path.parent} first"
        raise NotSetUpError(f"the page {path} cannot be written: {error.strerror}{advice}") from error
    return target


def render_page(logged: LoggedRun, start: Path) -> bytes:
    """Return the page of a run; its links begin at the folder `start`."""
    from code_commit.commands.page.view import page_values

    return logged.redactor.redact(render_template(__name__, page_values(logged, start)))


def render_template(package: str, values: Mapping[str, Any]) -> bytes:
    """Return a package's page.html.j2 with the values, its page.js, and its page.css after the one that is here."""
    template, style, script = _template(package)
    return template.render(values, style=style, script=script).encode("utf-8", "replace")


@cache
def _template(package: str) -> tuple["Template", "Markup", "Markup"]:
    """Return a package's compiled page, its style and its script."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    from code_commit.commands.page.view import shortened

    def one_line(value: object) -> object:
        """Return a text with invisible characters escaped, and our own markup as it is."""
        return shown(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=one_line
    )
    environment.filters |= {"count": "{:,}".format, "counted": count, "duration": duration, "dollars": dollars}
    environment.filters |= {"shortened": shortened, "done_by_build": done_by_build, "choice_in_words": choice_in_words}
    environment.filters |= {"rewritten_by_build": rewritten_by_build}
    style = "".join(_text(each, "page.css") for each in dict.fromkeys((__name__, package)))
    script = _text(package, "page.js")
    environment.globals |= {"style_hash": _hash(style), "script_hash": _hash(script)}
    template = environment.from_string(_text(package, "page.html.j2"))
    return template, Markup(style), Markup(script)  # noqa: S704 - our own, and no foreign text in it


def _text(package: str, name: str) -> str:
    return (resources.files(package) / name).read_text("utf-8")


def _hash(text: str) -> str:
    return base64.b64encode(sha256(text.encode()).digest()).decode()
