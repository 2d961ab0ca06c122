"""A module's patterns: each is one that `re` takes, and none is compiled before it is used."""

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


def import_all() -> Iterator[ModuleType]:
    for path in MODULES:
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        try:
            yield importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name not in WITH_EXTRAS:
                raise


def constants_of(value: object) -> Iterator[object]:
    """Yield a module's constants, and what is in its tables."""
    if isinstance(value, dict | tuple | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from constants_of(member)
    else:
        yield value


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


def test_every_pattern_of_a_module_compiles_and_none_has_done_so_before_it_is_used():
    constants = [(module.__name__, each) for module in import_all() for each in constants_of(vars(module))]
    late = [each for _, each in constants if isinstance(each, _Late)]
    assert len(late) > 200
    assert all(each.groups >= 0 for each in late)
    assert [name for name, each in constants if isinstance(each, re.Pattern)] == []
