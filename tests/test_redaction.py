import base64
import html
import json
import shutil
import subprocess
import urllib.parse
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from code_commit.redaction import Redactor

KEY = "sk-proj-AbC/+dEfGh1234567890xY"
CENSORED = "*" * (len(KEY) - 2) + "xY"


def dump(*command: str) -> Callable[[str], str]:
    return lambda text: subprocess.run(command, input=text.encode(), capture_output=True, check=True).stdout.decode()


SPELLINGS: dict[str, Callable[[str], str]] = {
    "raw": str,
    "upper case": str.upper,
    "lower case": str.lower,
    "reversed": lambda key: key[::-1],
    "twice": lambda key: key + key,
    "JSON": json.dumps,
    "JSON with escaped slashes": lambda key: json.dumps(key).replace("/", "\\/"),
    "JSON, all escaped": lambda key: "".join(f"\\u{ord(char):04x}" for char in key),
    "JSON, all escaped, upper case": lambda key: "".join(f"\\u{ord(char):04X}" for char in key),
    "JSON in JSON": lambda key: json.dumps(json.dumps(key)),
    "URL": lambda key: urllib.parse.quote(key, safe=""),
    "URL in lower case": lambda key: urllib.parse.quote(key, safe="").lower(),
    "URL, all quoted": lambda key: "".join(f"%{ord(char):02X}" for char in key),
    "URL, quoted twice": lambda key: urllib.parse.quote(urllib.parse.quote(key, safe="")),
    "XML": html.escape,
    "XML, all decimal": lambda key: "".join(f"&#{ord(char)};" for char in key),
    "XML, all hexadecimal": lambda key: "".join(f"&#x{ord(char):x};" for char in key),
    "Python or C, all hexadecimal": lambda key: "".join(f"\\x{ord(char):02x}" for char in key),
    "C, all octal": lambda key: "".join(f"\\{ord(char):03o}" for char in key),
    "shell quotes": lambda key: f"'{key[:1]}'{key[1:9]}\"{key[9:]}\"",
    "Python repr": repr,
    "UTF-16": lambda key: key.encode("utf-16-le").decode("latin-1"),
    "UTF-16, big end first": lambda key: key.encode("utf-16-be").decode("latin-1"),
    "wrapped": lambda key: key[:11] + "\n" + key[11:],
    "wrapped and indented": lambda key: key[:11] + "\r\n    " + key[11:],
    "coloured": lambda key: f"\x1b[31m{key[:3]}\x1b[0;1m{key[3:12]}\x1b[m{key[12:]}",
    "reset as tput writes it": lambda key: f"{key[:11]}\x1b(B\x1b[m{key[11:]}",
    "coloured with colons": lambda key: f"{key[:11]}\x1b[38:5:1m{key[11:]}",
    "shifted in": lambda key: f"{key[:11]}\x0f{key[11:]}",
    "titled": lambda key: f"{key[:11]}\x1b]0;title\x07{key[11:]}",
    "decimal numbers": lambda key: f"[{' '.join(str(ord(char)) for char in key)}]",
    "hexadecimal": lambda key: key.encode().hex(),
    "hexadecimal in upper case": lambda key: key.encode().hex().upper(),
    "hexadecimal with colons": lambda key: key.encode().hex(":"),
    "a C array": lambda key: ", ".join(f"0x{ord(char):02x}" for char in key),
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64 behind one byte": lambda key: base64.b64encode(b":" + key.encode() + b"z").decode(),
    "base64 behind two bytes": lambda key: base64.b64encode(b"u:" + key.encode() + b"zz").decode(),
    "base64 for URLs": lambda key: base64.urlsafe_b64encode(key.encode()).decode().rstrip("="),
    "base64 of user and key": lambda key: base64.b64encode(b"user:" + key.encode()).decode(),
    "base64, wrapped": lambda key: "\n".join(wrap(base64.b64encode(b"x" * 40 + key.encode()).decode(), 76)),
}

ROW_DUMPS: dict[str, Callable[[str], str]] = {
    "concatenated": lambda key: f'"{key[:11]}" + "{key[11:]}"',
    "wrapped in a diff": lambda key: key[:11] + "\n+ " + key[11:],
    "od -c": dump("od", "-c"),
    "od -An -tx1": dump("od", "-An", "-tx1"),
    "od -tx1": dump("od", "-tx1"),
    "od -b": dump("od", "-b"),
    "od -tx1z": dump("od", "-Ax", "-tx1z"),
    "od -tx1z, short rows": dump("od", "-Ax", "-w8", "-tx1z"),
}


def wrap(text: str, width: int) -> list[str]:
    return [text[start : start + width] for start in range(0, len(text), width)]


def in_pieces(redactor: Redactor, *pieces: bytes) -> bytes:
    out: list[bytes] = []
    stream = redactor.stream(out.append)
    for piece in pieces:
        stream.write(piece)
    stream.close()
    return b"".join(out)


@pytest.mark.parametrize("spell", [*SPELLINGS.values(), *ROW_DUMPS.values()], ids=[*SPELLINGS, *ROW_DUMPS])
def test_every_spelling_is_censored(spell):
    redacted = Redactor([KEY]).redact_text(f"before {spell(KEY)} after")
    assert CENSORED in redacted
    assert redacted.count("*") == (len(KEY) - 2) * redacted.count(CENSORED)
    assert redacted.startswith("before ")
    assert len(redacted) < len("before  after") + 2 * len(CENSORED) + 60


@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS)
def test_every_spelling_is_censored_when_split_anywhere(spell):
    redactor = Redactor([KEY])
    data = f"before {spell(KEY)} after".encode()
    whole = redactor.redact(data)
    for split in range(1, len(data)):
        assert in_pieces(redactor, data[:split], data[split:]) == whole, split
    assert in_pieces(redactor, *(data[place : place + 1] for place in range(len(data)))) == whole


BUILD_OUTPUT = b"2026-11-22 01:02:03 INFO  Compiling zlib_12 v0.4.1 (+https://example.org/z?q=%20) \\n\\x7a\n" * 4000


@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS)
@pytest.mark.parametrize(
    "key", [KEY, "AIza" + "SyQ7x9-Lk_mNoPqRsTuVwXyZ0123456ab", "hunter42", "0123456789ab", "+/+/+/+/+/+/+/"]
)
def test_a_key_is_met_in_much_output_that_holds_none(spell, key):
    redactor = Redactor([key, "another-key-of-some-length"])
    hidden = f"before {spell(key)} after\n".encode()
    redacted = redactor.redact(BUILD_OUTPUT + hidden + BUILD_OUTPUT)
    assert redacted == BUILD_OUTPUT + redactor.redact(hidden) + BUILD_OUTPUT
    assert b"*" in redactor.redact(hidden)


WITH_GAPS: dict[str, Callable[[str], str]] = {
    "JSON, some letters escaped": lambda key: escaped(key, "\\u00{:02x}", 3),
    "URL, some letters quoted": lambda key: escaped(key, "%{:02X}", 2),
    "XML, some letters as numbers": lambda key: escaped(key, "&#{};", 3),
    "C, some letters octal": lambda key: escaped(key, "\\{:03o}", 4),
    "JSON, all escaped, coloured": lambda key: "\x1b[1m".join(f"\\u{ord(char):04x}" for char in key),
    "Python, all escaped, line ends quoted": lambda key: "\\n".join(f"\\x{ord(char):02x}" for char in key),
    "XML, all decimal, in a diff": lambda key: "\n+ ".join(f"&#{ord(char)};" for char in key),
    "in a diff, one a line": "\n> ".join,
    "as a sum of strings": '" + "'.join,
    "between quoted line ends": "\\r\\n".join,
}


def escaped(key: str, spelling: str, step: int) -> str:
    return "".join(char if place % step else spelling.format(ord(char)) for place, char in enumerate(key))


@pytest.mark.parametrize("spell", WITH_GAPS.values(), ids=WITH_GAPS)
@pytest.mark.parametrize("key", [KEY, "AIzaSyQ7x9-Lk_mNoPqRsTuVwXyZ0123456ab", "57909fd7-bc74-4326-818a-e7c6d95335ee"])
@pytest.mark.parametrize("place", range(6))
def test_escapes_of_some_characters_and_odd_gaps_are_met(spell, key, place):
    """`place` moves the escapes on, so that each character is escaped once."""
    spelled = key[:place] + spell(key[place:])
    around = BUILD_OUTPUT[: len(BUILD_OUTPUT) // 50]
    redacted = Redactor([key]).redact(around + f"before {spelled} after\n".encode() + around)
    assert redacted == around + f"before {'*' * (len(key) - 2)}{key[-2:]} after\n".encode() + around


DUMPS = [("xxd",), ("xxd", "-g1"), ("xxd", "-c8"), ("hexdump", "-vC"), ("od", "-v", "-Ax", "-tx1z")]


@pytest.mark.parametrize("command", [command for command in DUMPS if shutil.which(command[0])], ids=" ".join)
@pytest.mark.parametrize(
    "key", ["57909fd7-bc74-4326-818a-e7c6d95335ee", "ab1cd-ef2gh-ij3kl-mn4op-qr5st", "0123456789abcdef" * 3]
)
def test_a_dump_shows_no_more_of_a_key_in_its_numbers_than_in_its_text(command, key):
    for before in range(16):
        text = "=" * before + key + " KE=yY"
        redacted = Redactor([key]).redact_text(f"before\n{dump(*command)(text)}")
        shown = {redacted[start : start + 4] for start in range(len(redacted))}
        assert shown.isdisjoint(key[start : start + 4] for start in range(len(key) - 3)), before
        assert key.encode()[-6:-2].hex() not in redacted.replace(" ", ""), before


def test_a_piece_of_a_key_that_looks_like_a_row_s_offset_is_met():
    assert Redactor(["a0e71a722152"]).redact_text('a0e7"\n  + "1"\n  + "\na722152 end') == "**********52 end"


def test_what_is_nearly_a_key_takes_no_time():
    key = "".join(f"{number:02x}G" for number in range(55))
    redactor = Redactor([key])
    rows = "".join(
        f"{place:08x} {key[place : place + 8].encode().hex(' ')}   >{key[place : place + 8]}<\n"
        for place in range(0, len(key) - 8, 8)
    )
    quoted = '"\n+ "  \r\n  # \n> \t\r\n | '.join(key[:-1])
    for text in (
        rows,
        quoted,
        "   ".join(key[:-1]),
        key[:-1].replace("G", "\\n \x1b[m \n"),
        key[:-1].encode().hex(" "),
    ):
        assert redactor.redact_text(text + "!") == text + "!"


def test_quotes_in_a_key_are_read_in_one_way_only():
    key = 'zk""\'\'\\""""q12ab34\'\'""x"'
    redactor = Redactor([key])
    nearly = '"\n+ "  \r\n  # \n> \t\r\n | '.join(key[:-2]) * 500
    assert redactor.redact_text(nearly) == nearly
    for spelled in (key, json.dumps(key), html.escape(key), urllib.parse.quote(key), "\n+ ".join(key)):
        assert "q12ab34" not in redactor.redact_text(f"before {spelled} after").replace("\n+ ", "")


@pytest.mark.parametrize("dots", ["****", "...", "…", "xxxx", "*" * 40])
def test_a_provider_s_own_censoring_shows_no_more_than_ours(dots):
    assert (
        Redactor([KEY]).redact_text(f"Incorrect API key: {KEY[:7]}{dots}{KEY[-4:]}.")
        == f"Incorrect API key: {CENSORED}."
    )


def test_several_keys_overlapping_and_adjacent():
    redactor = Redactor(["first-key-0001", "key-0001-second", "third-key-0003"])
    assert redactor.redact_text("first-key-0001-second") == "*" * 12 + "01"
    assert redactor.redact_text("third-key-0003first-key-0001") == "*" * 12 + "03" + "*" * 12 + "01"


@pytest.mark.parametrize("spell", WITH_GAPS.values(), ids=WITH_GAPS)
def test_line_beginnings_are_followed_from_write_to_write(spell):
    redactor = Redactor([KEY])
    data = f"before {spell(KEY)} after\n".encode()
    whole = redactor.redact(data)
    shown_at_once = 5
    for split in range(1, len(data), 3):
        split_redacted = in_pieces(redactor, data[:split], data[split:])
        assert split_redacted[-len(CENSORED) - 7 :] == whole[-len(CENSORED) - 7 :], split
        assert len(split_redacted) - len(whole) <= shown_at_once * 8, split


@pytest.mark.parametrize("command", [command for command in DUMPS if shutil.which(command[0])], ids=" ".join)
def test_a_dump_is_followed_from_write_to_write(command):
    redactor = Redactor([KEY])
    data = b"before\n" + dump(*command)("=" * 7 + KEY + " and more of it " * 4).encode() + b"after\n"
    whole = redactor.redact(data)
    for split in range(1, len(data)):
        assert in_pieces(redactor, data[:split], data[split:]) == whole, split
    assert in_pieces(redactor, *(data[place : place + 1] for place in range(len(data)))) == whole


def test_a_line_does_not_wait_for_the_next_one():
    out: list[bytes] = []
    stream = Redactor([KEY]).stream(out.append)
    stream.write(b"running tests\n")
    assert b"".join(out) == b"running tests\n"
    stream.write(b"k-proj")
    stream.close()
    assert b"".join(out) == b"running tests\nk-proj"


def test_json_stays_json_where_the_key_ends_in_a_quote():
    redactor = Redactor(['0123456789abcd\\"'])
    document = redactor.redact_json({'0123456789abcd\\"': ['x 0123456789abcd\\"', 1, None]})
    assert json.loads(document) == {'**************\\"': ['x **************\\"', 1, None]}


def test_no_key_changes_nothing():
    assert Redactor([]).redact(b"\xff\0anything") == b"\xff\0anything"
    assert in_pieces(Redactor([]), b"a", b"b") == b"ab"


keys = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=8, max_size=40)
noise = st.binary(max_size=60)


@settings(deadline=None)
@given(keys, noise, noise, st.sampled_from(sorted(SPELLINGS)), st.lists(st.integers(0, 400), max_size=6))
def test_nothing_of_a_random_key_survives_any_split(key, before, after, name, cuts):
    data = b"\n" + before + b"\n" + SPELLINGS[name](key).encode() + b"\n" + after
    places = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    redacted = in_pieces(Redactor([key]), *(data[start:end] for start, end in pairwise(places)))
    if len(set(key)) > 3:
        spelled = SPELLINGS[name](key).encode()
        assert spelled not in redacted
        assert key.encode()[:-2] not in redacted


@settings(deadline=None)
@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=5))
def test_data_without_the_key_is_unchanged(data, cuts):
    places = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    pieces = [data[start:end] for start, end in pairwise(places)]
    redactor = Redactor([KEY])
    assert in_pieces(redactor, *pieces) == data == redactor.redact(data)


@given(st.text(max_size=100))
def test_text_without_the_key_is_unchanged(text):
    assert Redactor([KEY]).redact_text(text) == text
