"""Embedded images stand in no codebase that has to fit."""

import random
import string
from pathlib import Path

import pytest
from command import git

from code_commit.codebase.images import has_images, lines_beside_images, without_images
from code_commit.codebase.make import make_codebase
from code_commit.codebase.select import CodebaseRequest
from code_commit.project import find_project
from code_commit.redaction import Redactor
from code_commit.views import Outline, Part

IMAGE = "".join(random.Random(1).choices(string.ascii_letters + string.digits + "+/", k=3_000))
WRAPPED = "\n".join(IMAGE[at : at + 76] for at in range(0, 3_000, 76))
NOTEBOOK = f'{{\n "cells": [{{\n  "source": ["plot(a)"],\n  "image/png": "{IMAGE}",\n  "text": ["plot(b)"]\n }}]\n}}\n'
ONE_LINE = NOTEBOOK.replace("\n", "") + "\n"


@pytest.mark.parametrize(
    "text",
    [
        NOTEBOOK,
        ONE_LINE,
        NOTEBOOK.replace(IMAGE, IMAGE[:1_500] + "\\n" + IMAGE[1_500:]),
        f'<svg><image xlink:href="data:image/png;base64,{IMAGE}"/><text>plot(a)</text></svg>\n',
        f'<svg><image xlink:href="data:image/jpeg;base64,\n{WRAPPED}\n"/><text>plot(a)</text></svg>\n',
    ],
)
def test_an_image_is_told_by_its_length_and_what_is_around_it_stays(text: str):
    assert has_images(text)
    short = without_images(text)
    assert len(short) < 400
    assert "plot(a)" in short
    assert "characters of an image are not shown here ...]" in short


def test_a_source_file_with_an_icon_is_none_of_images():
    assert not has_images(f"icon = 'data:image/png;base64,{IMAGE[:400]}'\n")
    assert not has_images("x = 1\n" * 2_000 + f"icon = 'data:image/png;base64,{IMAGE}'\n")
    assert not has_images(f"key = '{IMAGE}'\n")
    assert lines_beside_images(ONE_LINE) is None


@pytest.mark.parametrize("edits", [True, False])
def test_a_notebook_is_shown_without_its_images(project_folder: Path, *, edits: bool):
    """An answer may be edits of the lines beside them; else it cannot change the file, as it does not see all of it."""
    (project_folder / "plot.ipynb").write_text(NOTEBOOK)
    (project_folder / "line.ipynb").write_text(ONE_LINE)
    git(project_folder, "add", "-A")
    request = CodebaseRequest(fit=20_000, query="Make plot.ipynb larger.", edits=edits)
    made = make_codebase(find_project(project_folder), (), request, Redactor([]))
    assert IMAGE[:200] not in made.text
    assert "plot(b)" in made.text
    assert isinstance(made.views["plot.ipynb"], Part if edits else Outline)
    assert isinstance(made.views["line.ipynb"], Outline)
