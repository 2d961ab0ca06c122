"""How the code speaks: docstrings begin with the main clause, and names that proved to be riddles do not come back."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "code_commit"

RIDDLE = re.compile(r"(?:\A|[.!?]\s+)(?:What|That|Those|Of|Where|Who)\b")
OLD_NAMES = {"Given", "Asked", "Shown", "Told", "Need", "Saved", "Desk", "Order"}
OLD_NAMES |= {"refit", "shells", "is_aside", "find_twins", "doubt_model", "but_its_own", "_untold", "ended_with_us"}
NAMES_OF_ONE_THING = {"settle", "cost_of", "require_fit", "select_files", "text_of"}


@pytest.fixture(scope="module")
def modules() -> dict[str, ast.Module]:
    return {str(path.relative_to(PACKAGE)): ast.parse(path.read_bytes()) for path in PACKAGE.rglob("*.py")}


def docstrings(tree: ast.Module) -> Iterator[str]:
    """Yield the docstrings, of constants too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield str(node.value.value)


def definitions(tree: ast.Module) -> Iterator[str]:
    """Yield the names of functions, classes, parameters, variables and fields that a module makes."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name


def test_no_sentence_of_a_docstring_begins_with_its_subordinate_clause(modules):
    found = {name for name, tree in modules.items() if any(map(RIDDLE.search, docstrings(tree)))}
    assert found == set(), "begin with the verb: Return ..., Raise ..., Write ..."


def test_no_name_that_was_a_riddle_is_back(modules):
    found = {name for name, tree in modules.items() if OLD_NAMES.intersection(definitions(tree))}
    assert found == set(), "redesigned: RunInputs, LlmConfig, Sight, Strategy, UndoScope ..."


def test_these_names_are_of_one_thing_each(modules):
    functions = [
        node.name
        for tree in modules.values()
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name in NAMES_OF_ONE_THING
    ]
    assert {name for name in functions if functions.count(name) > 1} == set()
