"""A key is censored in every form that a tool or a vendor gives it, however the data are cut; all else stays."""

import base64
import html
import json
import urllib.parse
from collections.abc import Callable, Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measure import cpu_seconds, least

from code_commit.changes import Reasons, RejectedResponseError
from code_commit.redaction import Redactor

KEY = "sk-proj-AbC/+dEfGh1234567890xY"
CENSORED = "*" * (len(KEY) - 2) + "xY"


def each(form: str) -> Callable[[str], str]:
    return lambda key: "".join(form.format(ord(char)) for char in key)


def punctuation(form: str) -> Callable[[str], str]:
    return lambda key: "".join(char if char.isalnum() else form.format(ord(char)) for char in key)


def base64_after(before: bytes, encode: Callable[[bytes], bytes] = base64.b64encode) -> Callable[[str], str]:
    return lambda key: encode(before + key.encode() + b"\n").decode()


FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "JSON": lambda key: json.dumps(key)[1:-1],
    "JSON with escaped slashes": lambda key: json.dumps(key)[1:-1].replace("/", "\\/"),
    "JSON, the first escaped": lambda key: each("\\u{:04x}")(key[0]) + json.dumps(key[1:])[1:-1],
    "JSON, all escaped": each("\\u{:04x}"),
    "JSON, all escaped in upper case": each("\\u{:04X}"),
    "URL": lambda key: urllib.parse.quote(key, safe=""),
    "URL, all punctuation": punctuation("%{:02X}"),
    "URL, all punctuation in lower case": punctuation("%{:02x}"),
    "URL, all escaped": each("%{:02X}"),
    "URL, all escaped in lower case": each("%{:02x}"),
    "XML": html.escape,
    "XML, punctuation in decimal": punctuation("&#{};"),
    "XML, punctuation in hexadecimal": punctuation("&#x{:02X};"),
    "XML, all in decimal": each("&#{};"),
    "XML, all in hexadecimal": each("&#x{:x};"),
    "JSON in JSON": lambda key: json.dumps(json.dumps(json.dumps(key)))[7:-7],
    "JSON in JSON, all punctuation": punctuation("\\\\u{:04x}"),
    "code, all punctuation": punctuation("\\x{:02x}"),
    "URL in a URL": lambda key: urllib.parse.quote(urllib.parse.quote(key, safe=""), safe=""),
    "XML in XML": lambda key: html.escape(html.escape(key)),
    "hexadecimal": lambda key: key.encode().hex(),
    "hexadecimal in upper case": lambda key: key.encode().hex().upper(),
    "base64": base64_after(b""),
    "base64 after one byte": base64_after(b":"),
    "base64 of user and key": base64_after(b"user:"),
    "base64 for URLs": base64_after(b"", base64.urlsafe_b64encode),
    "base64 for URLs after one byte": base64_after(b":", base64.urlsafe_b64encode),
    "base64 for URLs after two bytes": base64_after(b"::", base64.urlsafe_b64encode),
}

each_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


def in_pieces(redactor: Redactor, pieces: Iterable[bytes]) -> bytes:
    out: list[bytes] = []
    stream = redactor.stream(out.append)
    for piece in pieces:
        stream.write(piece)
    stream.close()
    return b"".join(out)


def cut_at(data: bytes, places: Iterable[int]) -> list[bytes]:
    ends = [0, *sorted(place for place in places if place < len(data)), len(data)]
    return [data[start:end] for start, end in pairwise(ends)]


@each_form
@pytest.mark.parametrize("key", [KEY, "AIzaSyQ7x9-Lk_mNoPqRsTuVwXyZ0123456ab", "hunter42", "a&b<c>\"d/e\\f'g%41"])
def test_every_form_is_censored(form, key):
    redacted = Redactor(["another-key", key]).redact_text(f"before {form(key)} after")
    assert "*" * (len(key) - 2) + key[-2:] in redacted
    assert redacted.startswith("before ")
    assert redacted.endswith(" after")
    assert len(redacted) <= len("before  after") + len(key) + len("dXNlcj=====")


@each_form
def test_every_form_is_censored_wherever_it_is_cut(form):
    redactor = Redactor([KEY])
    data = f"before {form(KEY)} after".encode()
    whole = redactor.redact(data)
    for place in range(1, len(data)):
        assert in_pieces(redactor, cut_at(data, [place])) == whole, place
    assert in_pieces(redactor, cut_at(data, range(len(data)))) == whole


@pytest.mark.parametrize("key", ["a word and 12345", "not-\udcff-text", "x\ty\rz & 100% \\n"])
def test_an_odd_key_is_censored_wherever_it_is_cut(key):
    redactor = Redactor([key])
    data = f"before {key} after".encode(errors="surrogateescape")
    for place in range(1, len(data)):
        assert in_pieces(redactor, cut_at(data, [place])) == redactor.redact(data) != data, place


@each_form
@pytest.mark.parametrize(
    "line", [b"   Compiling sk-zlib v0.4 (100%) \\u00e9 &amp; ... ok\n", "✓ été\n".encode(), b"\xff\0\n"]
)
def test_every_form_is_censored_in_much_output(form, line):
    redactor = Redactor(["another-key", "clé", KEY])
    written = f"{form(KEY)} after\n".encode()
    before, after = line * 10_000, line * 2_000
    assert redactor.redact(before + written + after) == before + redactor.redact(written) + after
    assert redactor.redact(before) is before


def test_a_key_that_joins_later_is_censored_in_much_output_too():
    redactor, much = Redactor(["another-key"]), b"   Compiling sk-zlib v0.4 (100%)\n" * 10_000
    assert redactor.redact(much) is much
    redactor.add(KEY)
    assert redactor.redact(much + KEY.encode()) == much + CENSORED.encode()


@pytest.mark.parametrize("dots", ["***", "....", "…", "xxxx"])
def test_a_vendor_s_quotation_is_censored_in_much_output(dots):
    text = "   Compiling sk-zlib v0.4 (100%)\n" * 5_000
    assert Redactor([KEY]).redact_text(f"{text}{KEY[:7]}{dots}{KEY[-4:]}\n{text}") == f"{text}{CENSORED}\n{text}"


@pytest.mark.parametrize("dots", ["****", "...", "…", "xxxx", "*" * 40])
@pytest.mark.parametrize("shown", [(2, 3), (7, 4), (20, 6)])
def test_a_vendor_s_quotation_shows_no_more_than_ours(dots, shown):
    beginning, end = shown
    text = f"Incorrect API key: {KEY[:beginning]}{dots}{KEY[-end:]}."
    redactor = Redactor([KEY])
    assert redactor.redact_text(text) == f"Incorrect API key: {CENSORED}."
    data = text.encode()
    for place in range(1, len(data)):
        assert in_pieces(redactor, cut_at(data, [place])) == redactor.redact(data), place


def test_keys_that_overlap_or_touch_become_one():
    redactor = Redactor(["first-key-0001", "key-0001-second", "key-0001-second-and-more", "third-key-0003"])
    for text in ("first-key-0001-second", "first-key-0001third-key-0003", "first-key-0001-second-and-more"):
        assert redactor.redact_text(f"<{text}>") == "<" + "*" * 12 + "01>"
        data = f"<{text}>".encode()
        for place in range(1, len(data)):
            assert in_pieces(redactor, cut_at(data, [place])) == redactor.redact(data), place
    assert redactor.redact_text("key-0001-second-and-more") == "*" * 22 + "re"
    assert Redactor(["abcabcab"]).redact_text("abcabcabcabcab.") == "******ab."


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("running tests\n", ""),
        ("10% done, 3 & 4 ... ", ""),
        ("a key: sk-proj", "sk-proj"),
        ("sk-proj-AbC/\n", ""),
        ("\\u0073\\u006b-pr", "\\u0073\\u006b-pr"),
        ("sk-pro***x", "sk-pro***x"),
        ("=c2stcHJv", "c2stcHJv"),
    ],
)
def test_only_what_may_become_a_key_is_held_back(text, held):
    out: list[bytes] = []
    stream = Redactor([KEY]).stream(out.append)
    stream.write(text.encode())
    assert b"".join(out) == text.removesuffix(held).encode()
    stream.close()
    assert b"".join(out) == text.encode()


@pytest.mark.parametrize(
    ("text", "censored"),
    [
        ("your key sk-proj-AbC/+dE", "your key ***************"),
        ("+dEfGh1234567890xY is not known", "****************xY is not known"),
        ("7890xY is not sk-proj", "7890xY is not sk-proj"),
        (f"your key {KEY} is", f"your key {CENSORED} is"),
    ],
)
def test_what_a_cut_left_of_a_key_is_censored(text, censored):
    assert Redactor([KEY]).redact_cut(text) == censored


def test_a_key_that_is_no_text_is_censored():
    assert Redactor(["not-\udcff-text"]).redact(b"a not-\xff-text b") == b"a ********xt b"
    assert Redactor(["not-\udcff-text"]).redact_cut("a not-\udcff-te") == "a ********"


def test_json_stays_json_where_the_key_ends_in_a_quote():
    redactor = Redactor(['0123456789abcd\\"'])
    document = redactor.redact_json({'0123456789abcd\\"': ['x 0123456789abcd\\"', 1, None]})
    assert json.loads(document) == {"*" * 16: ["x " + "*" * 16, 1, None]}


@pytest.mark.parametrize("form", [FORMS[name] for name in FORMS if "JSON" in name])
def test_json_that_holds_json_stays_json(form):
    document = Redactor([KEY]).redact_json({form(KEY): [f"x{form(KEY)}y"]})
    assert KEY[3:] not in str(json.loads(document))


@pytest.mark.sweep
def test_a_json_document_of_a_million_members_is_made_at_once():
    value = {"reply": [1] * 5_000_000}

    def ratio() -> float:
        plain = cpu_seconds(lambda: json.dumps(value))
        return cpu_seconds(lambda: Redactor([KEY]).redact_json(value)) / plain

    assert least(ratio, 3) < 3, "json.dumps takes a half of it"
    assert json.loads(Redactor([KEY]).redact_json(value)) == value


def test_half_a_character_is_replaced_in_json():
    assert json.loads(Redactor([]).redact_json({"text": "\ud800 \u65e5"})) == {"text": "\ufffd \u65e5"}


printable = st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters="*\\")
token = st.text(st.sampled_from("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"), min_size=16)
keys = st.one_of(token.map("sk-".__add__), st.text(printable, min_size=8, max_size=40))
neighbours = st.text(st.sampled_from(" \n\té日"), max_size=40)
cuts = st.lists(st.integers(0, 400), max_size=6)


@given(keys, neighbours, neighbours, st.sampled_from(sorted(FORMS.keys() - {"base64 of user and key"})), cuts)
def test_nothing_of_a_random_key_survives(key, before, after, name, places):
    written = FORMS[name](key)
    data = f"{before}\n{written}\n{after}".encode()
    redactor = Redactor([key])
    redacted = in_pieces(redactor, cut_at(data, places))
    assert redacted == redactor.redact(data)
    assert key.encode()[:-2] not in redacted
    assert not any(written[place : place + 6].encode() in redacted for place in range(len(written) - 5))


@given(st.binary(max_size=300), cuts)
def test_data_without_the_key_are_unchanged(data, places):
    redactor = Redactor([KEY])
    assert in_pieces(redactor, cut_at(data, places)) == data == redactor.redact(data)


@given(st.text(max_size=100))
def test_text_without_the_key_is_unchanged(text):
    assert Redactor([KEY]).redact_text(text) == text
    assert Redactor([]).redact_text(text) == text


def test_the_fact_of_a_suspicion_is_censored_as_its_message():
    reasons = Reasons()
    reasons.suspect("a", 1, "omission", "sk-proj-secret stands there", "send it")
    with pytest.raises(RejectedResponseError) as caught:
        reasons.reject(lambda text: text.replace("sk-proj-secret", "***"))
    (found,) = caught.value.violations
    assert (found.fact, "sk-proj-secret" in found.message) == ("*** stands there", False)
