"""A module's patterns: each is one that `re` takes, and none is compiled before it is used."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from code_commit.regex import _Late, regex

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "code_commit").rglob("*.py"))
WITH_EXTRAS = {"dask", "distributed", "mcp"}


def eager_patterns(tree: ast.AST) -> Iterator[int]:
    """Yield the lines outside of functions that compile a pattern."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile":
            yield node.lineno
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            yield from eager_patterns(node)


def import_all() -> Iterator[ModuleType]:
    for path in MODULES:
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        try:
            yield importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name not in WITH_EXTRAS:
                raise


def patterns_in(value: object) -> Iterator[_Late]:
    """Yield the patterns among a module's constants and in its tables."""
    if isinstance(value, _Late):
        yield value
    elif isinstance(value, dict | tuple | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from patterns_in(member)


@pytest.mark.parametrize("text", ["One, TWO", b"One, TWO"], ids=["text", "bytes"])
def test_a_pattern_does_what_a_compiled_one_does(text):
    words = r"(?P<first>[a-z]+), (two)" if isinstance(text, str) else rb"(?P<first>[a-z]+), (two)"
    late, compiled = regex(words, re.IGNORECASE), re.compile(words, re.IGNORECASE)
    for name in ("match", "search", "fullmatch", "findall", "split"):
        ours, theirs = getattr(late, name)(text), getattr(compiled, name)(text)
        assert str(ours) == str(theirs)
    assert [match.groupdict() for match in late.finditer(text)] == [compiled.match(text).groupdict()]
    assert late.sub(text[:0], text) == compiled.sub(text[:0], text)
    facts = ("pattern", "flags", "groups", "groupindex")
    assert [getattr(late, fact) for fact in facts] == [getattr(compiled, fact) for fact in facts]


def test_a_pattern_is_compiled_when_it_is_used():
    wrong = regex("(")
    assert wrong.pattern == "("
    with pytest.raises(re.error):
        wrong.search("x")


def test_every_pattern_of_a_module_compiles():
    patterns = {id(each): each for module in import_all() for each in patterns_in(vars(module))}
    assert len(patterns) > 200
    assert all(each.groups >= 0 for each in patterns.values())


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_compiles_a_pattern_when_it_is_imported(module):
    assert list(eager_patterns(ast.parse(module.read_bytes()))) == []
