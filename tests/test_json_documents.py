"""JSON documents of the log: every parser reads them, whatever an API's reply held."""

import json

import pytest

from code_commit.json_documents import json_document


def refuse(constant: str) -> float:
    raise ValueError(constant)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_json_does_not_have_are_written_as_texts(number):
    reply = json.loads(f'{{"usage": {number}, "rows": [1.5, {number}, {{"cost": {number}}}], "empty": {{}}}}')
    text = str(reply["usage"])
    document = json.loads(json_document(reply), parse_constant=refuse)
    assert document == {"usage": text, "rows": [1.5, text, {"cost": text}], "empty": {}}


def test_half_a_character_is_written_as_the_escape_that_it_came_as():
    assert json_document({"text": "\ud800 \u65e5"}) == b'{"text": "\\ud800 \xe6\x97\xa5"}\n'
