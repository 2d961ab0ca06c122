"""What a gate passes over has nothing that the search behind it finds."""

import re
import subprocess
import sys
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, event, example, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from code_commit.paths import gates, random_values
from code_commit.paths.escapes import without_escapes
from code_commit.paths.random_values import find_random_values
from code_commit.paths.secrets import _SECRET_SHAPES, _find_shapes

CHARACTERS = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
WIDE = "7kQmZ2x9Lw4TfVb1NcRs8yHgJdPa3UeX"
EXPRESSIONS = {"_URL": random_values._URL, "_LOGIN": random_values._LOGIN}


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Return what turns the engine on or off; it is on."""

    def turn(is_on: bool) -> None:  # noqa: FBT001 - on or off
        monkeypatch.setattr(gates._Engine, "seen", gates._WORTH if is_on else -sys.maxsize)

    turn(True)
    return turn


@pytest.mark.parametrize("kind", [r"\s", r"\d", r"\w", r"[\w.@-]"])
def test_a_class_of_pythons_has_no_character_that_its_gate_has_not(kind):
    found = re.findall(kind, "".join(CHARACTERS))
    assert len(found) > 20
    assert [character for character in found if not gates.may_have(kind, character)] == []
    assert not gates.may_have(kind, "!")


def test_each_letter_of_a_word_that_says_secret_passes_its_gate_in_any_case():
    words = random_values._SAYS.pattern.split("|")
    meant = {letter: list[str]() for word in words for letter in word}
    for character in CHARACTERS:
        meant.get(character.replace("\u0130", "i").lower(), []).append(character)
    assert (meant["k"], meant["i"]) == (["K", "k", "\u212a"], ["I", "i", "\u0130"])
    for word in words:
        for at, letter in enumerate(word):
            for other in meant[letter]:
                text = f"{word[:at]}{other}{word[at + 1 :]} = {WIDE}"
                assert gates.may_have(random_values._NEEDED, text), text


@pytest.mark.parametrize("pattern", [*_SECRET_SHAPES, *EXPRESSIONS])
@given(st.data())
@examples(max_examples=20)
def test_what_a_pattern_finds_passes_its_gate(pattern, data):
    exact = EXPRESSIONS[pattern].pattern if pattern in EXPRESSIONS else pattern
    text = data.draw(st.text(max_size=3)) + data.draw(st.from_regex(exact)) + data.draw(st.text(max_size=3))
    assert not re.search(exact, text) or gates.may_have(exact, text)


NAMES = [
    "password",
    "API_KEY",
    "db_secret",
    "token",
    "\u212aey",
    "PAROL\u0130",
    "ПАРОЛЬ",
    "密码",
    "pw",
    " -p",
    "x -a",
    "-u me:",
]
BETWEEN = ["=", ": ", " ", '"', "'", "`", "\n", "\n---\n", "\n| --- |\n---\n", ". ", "\\n", "\\t", "&quot;", "%3D"]
LETTERS = "qzvkxjwpmtghbdrclfns"
VALUES = [WIDE, WIDE[:14], "qmxh fgtz blxz rrvd", "qmxhfgtzblxzrrvd", LETTERS * 2 + WIDE[:20], "is", "AKIA" + "Q7" * 8]
BEHIND = ["\n", " ", "'", '"', ".\n", ". ", "@h.io", " | docker login --password-stdin"]
BEFORE = ["", "\n", "https://u:", "_", "auth=('a', '", "echo ", "x" * 70, "x = 1\n" * 50]
LINES = st.tuples(
    st.sampled_from(BEFORE),
    st.sampled_from(NAMES),
    st.lists(st.sampled_from(BETWEEN), max_size=3).map("".join),
    st.sampled_from(VALUES),
    st.sampled_from(BEHIND),
).map("".join)


@given(st.lists(LINES | st.text(max_size=2), min_size=1, max_size=3).map("".join), st.integers(1, 80), st.booleans())
@example(f"key = 'secret'\n---\n---\n{WIDE}", 80, False)
@example(f"docker login -p {LETTERS}{LETTERS}{WIDE[:20]}", 80, False)
@example("The secret: qmxh fgtz blxz rrvd. It is new.", 80, False)
@example(f"API_KEY=\n{WIDE}", 1, False)
@examples(max_examples=300, suppress_health_check=list(HealthCheck))
def test_the_same_secrets_are_found_with_gates_and_without(engine, monkeypatch, text, size, is_test):
    found = []
    for is_on, piece in ((False, sys.maxsize), (True, size)):
        engine(is_on)
        monkeypatch.setattr(gates, "_PIECE", piece)
        plain = without_escapes(text)
        found.append((plain, [*_find_shapes(plain), *find_random_values(plain, is_test=is_test)]))
    assert found[0] == found[1]
    event(f"{len(found[0][1])} secrets")


def test_few_and_short_texts_are_searched_without_the_import_of_the_engine():
    code = (
        "import sys; from code_commit.paths.secrets import explain_secret as explain\n"
        "for size in 1_000, 1_000_000:\n    explain('a.py', ['key = 1 - 2\\n' * (size // 12)], str)\n"
        "    print('pydantic_core' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
