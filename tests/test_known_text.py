"""A codebase that was searched for keys is not searched again in each prompt; nothing beside it is passed over."""

import json

import pytest

from code_commit.redaction import Redactor

KEY = "sk-test-AbCd1234efGH5678"
PLAIN = Redactor([KEY])
TEXT = "".join(f"    let value_{number} = compute({number});  // the line's purpose\n" for number in range(6000))
KNOWING = PLAIN.knowing(TEXT)

SPELLINGS = {
    "as it is": KEY,
    "spaced": " ".join(KEY),
    "over two lines": f"{KEY[:9]}\n{KEY[9:]}",
    "percent": "".join(f"%{ord(char):02x}" for char in KEY),
    "hex, 16 a line": "\n".join(KEY.encode().hex(" ")[start : start + 48] for start in range(0, 3 * len(KEY), 48)),
}
PLACES = {
    "before": lambda spelled: spelled + TEXT,
    "far before": lambda spelled: spelled + "x" * 100_000 + TEXT,
    "behind": lambda spelled: TEXT + spelled,
    "far behind": lambda spelled: TEXT + "x" * 100_000 + spelled,
    "between two of it": lambda spelled: TEXT + spelled + TEXT,
    "in a copy that is not whole": lambda spelled: TEXT[:200_000] + spelled + TEXT[200_000:],
    "in another copy behind it": lambda spelled: TEXT + TEXT[:200_000] + spelled + TEXT[200_000:],
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_key_beside_a_known_text_is_censored_as_ever(spelling, place):
    data = PLACES[place](SPELLINGS[spelling])
    assert PLAIN.reveals_key(data)
    assert KNOWING.redact_text(data) == PLAIN.redact_text(data)
    assert KNOWING.redact_json({"messages": [{"content": data}]}) == PLAIN.redact_json(
        {"messages": [{"content": data}]}
    )


def test_a_key_that_begins_or_ends_in_a_known_text_is_censored():
    for cut in range(1, len(KEY)):
        known = KEY[cut:] + TEXT + KEY[:cut]
        knowing = PLAIN.knowing(known)
        data = KEY[:cut] + known + KEY[cut:]
        assert knowing.redact_text(data) == PLAIN.redact_text(data)
        assert KEY not in knowing.redact_text(data)


def test_a_text_that_holds_a_key_is_not_taken_for_known():
    knowing = PLAIN.knowing(TEXT + KEY)
    assert KEY not in knowing.redact_text(TEXT + KEY)
    assert KEY not in json.loads(knowing.redact_json([TEXT + KEY]))[0]


def test_data_with_a_known_text_alone_stay_as_they_are():
    assert KNOWING.redact_text(f"[codebase]\n{TEXT}\n") == f"[codebase]\n{TEXT}\n"
    assert not KNOWING.reveals_key(TEXT)
