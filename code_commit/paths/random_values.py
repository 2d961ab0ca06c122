"""Values that look random: beside names that say secret, in URLs, behind the prefix of a vendor."""

import base64
import functools
import itertools
import json
import re
import string
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote

from code_commit.paths.escapes import text_in_base64
from code_commit.paths.gates import find_all, may_have, pieces_of
from code_commit.regex import regex

_IN_OTHER_LANGUAGES = """
    adgangskode contraseña haslo hasło heslo lösenord parola salasana senha wachtwoord şifre
    пароль パスワード 비밀번호 密码 密碼
"""
_FOREIGN = "|".join(_IN_OTHER_LANGUAGES.split())
_SAYS = regex(rf"secret|token|pass|pw|psk|cred|key|bearer|identified|{_FOREIGN}")
_SECRET_WORD = regex(
    rf"bearer|identified|creds?|keys?|\w*pass|passe|passwort|psk|pwd?|{_FOREIGN}"
    r"|\w*(credential|passphrase|passwd|password|secret|token)s?"
    r"|\w*(access|api|auth|encryption|private|secret|signing)keys?"
)
_SURE = regex(r"pass|pwd?|\w*(passphrase|passwd|password|secret)s?")
_OPENS = frozenset({"access", "api", "auth"})
_PUBLIC_WORDS = frozenset({"pub", "public", "publishable"})
_DIGESTS = frozenset(
    ["checksum", "digest", "fingerprint", "hash", "hashes", "md5", "sha", "sha1", "sha256", "sha384", "sha512"]
)
_UNTRUE = frozenset(["dummy", "encrypted", "example", "fake", "invalid", "malformed", "mock", "sealed", "wrong"])
_OTHER_WORDS = """
    address algorithm authenticity cache cert certificate challenge cipher ciphertext commit continuation csrf cursor
    etag id ids integrity kid next nonce page rev revision secure site sitekey thumbprint url urls uuid xsrf
"""
_OTHER = _UNTRUE | _DIGESTS | _PUBLIC_WORDS | {*_OTHER_WORDS.split()}
"""Other uses of a random value: a hash, what a CI server encrypted, no true key; a public name, a place in a list.
These last say nothing in front of a password, a secret or an access token: it is that of a cache, a page or a site."""
_OF_VALUES = _OTHER | {"signature"}
_ENDS_OTHERWISE = frozenset(["exp", "name", "names", "pattern", "ref", "refs", "regex", "regexp", "signature"])
_NONCE = "secwebsocketkey"  # of RFC 6455
_ISSUED = frozenset(["access", "api", "auth", "bot", "client", "oauth", "webhook"])
_OUTSIDE = regex(
    r"^(?![ \t]*(?://|/?\*|#|--|<!--))[^\n]*?"
    r"://(?:[^\s/@\"'<>]*@)?(?!localhost|127\.|0\.0\.0\.0|[\w.-]*\b(?:example|test)\b)[\w-]+\.\w",
    re.MULTILINE,
)
_OF_EACH_READER = (("appId", "indexName"), ("timestamp", "signature"))
_GENERAL = frozenset(["content", "data", "default", "old", "parameter", "text", "val", "value", "was"])
_NO_NAME = regex(r"\d+[_-]")
_ONLY_KEY = frozenset({"key", "keys"})
_QUALIFIED_KEY = regex(
    r"(access|admin|api|app|auth|client|cookie|encryption|hmac|jwt|master|private|signing|storage)s?"
)
_LABEL = regex(r"([\w.-]*)[=:]+(?![=:/]|\Z)", re.ASCII)
_WORD = regex(rf"(?i:(?<![a-z])(?:{_FOREIGN})(?![a-z]))|[A-Z]?[a-z]+\d*|[A-Z]+(?![a-z])\d*")
_OF_NAMES = string.ascii_letters + string.digits + "_-"
_LONGEST_NAME, _NEAR, _MOST_BETWEEN = 60, 240, 3  # characters of a name and behind it; words before its value
_PIECE = regex(r"[^\uff1a\s\"'`<>,;()\[\]{}|\\&]+")
_OF_BASE64, _ENDS_PIECE = frozenset("+/"), frozenset("+/@")  # of base64, of a URL
_OPENED = regex(r"[\"'`][(\[{<|&;]{0,3}\Z")
_QUOTED = regex(r"(?=([\"'`])(\S{12,200}?)\1)")
_REST = regex(r"[\"']?(?:[ \t]*=(?!=)|\s*:)[ \t]*(?!\w{3,}[(.])((?:(?!&\w+=)[^\s\"'`]){12,200}?)(?=\n|\Z|&\w+=)")
_ENDS_SENTENCE = regex(r"\.\s|\n\s*\n")
_RULE = regex(r"\n[ \t|:+=-]+(?=\n)")  # between the names and the values of a table
_URL = regex(r"(?:://[^\s:/@\"'`<>]{0,64}:|https?://)([^\s/:@\"'`<>{}$]{8,80})@([\w.-]+)")
_OF_SENTRY = regex(r"[0-9a-f]{32}")
_OF_NOBODY = regex(r"https?://([\w.-]+\.)?example\.(com|net|org)(:\d+)?[/?][^\s\"'`]*\Z")
_OF_LETTERS = r"[a-z]{4} ?[a-z]{4} ?[a-z]{4} ?[a-z]{4}"  # a password that Google makes for a program
_LETTERS = regex(rf"[\"']?[ \t:=>,(]{{1,6}}[\"']?({_OF_LETTERS})(?=[\"'\s;,<]|\Z)")
_LOGIN = regex(
    r"(?:Basic |\"auth\": ?\")([0-9A-Za-z+/]{16,}={0,2})"
    r"|(?:-[uU](?:ser)?[ =,\"']+[\w.@-]+[:,%]|(?:auth ?= ?|\.login)\(\s*[\"'][\w.@-]+[\"'],\s*[\"']"
    rf"|ConvertTo-SecureString [\"'])({_OF_LETTERS}|[^\s\"'`<>{{}}$]{{12,80}})"
    r"|echo (?:-n )?[\"']?(?:[\w.-]+:)?([^\s\"'`<>{}$/]{12,80})[\"']? ?\|"
    r"[^\n]{0,80}(?:--password-stdin| -S |chpasswd)"
)
"""A header, an argument, the option of a command that takes a name and a password, or what is piped into one."""
_OPTION = regex(
    r"(?:-(?<=[\s\"']-)(?:p[\"',= ]{0,4}|[aPw][\"',= ]{1,4})|/(?<=\s/)p:)"
    r"([^\s\"'`<>{}$/\\:;|&,()\[\]]{12,80})(?![^\s\"'`\\;|&,)\]])"
)
"""The option of a command for a password, as `docker login -p` or `redis-cli -a` has it, with its argument."""
_NO_HOST = regex(r"localhost|127\.[\d.]+|(.*\.)?example(\.\w+)?|host(name)?|\.*")
_PREFIXED = regex(r"[_-](?![0-9a-f]+[LR]\d+\b)[0-9A-Za-z]{32,}(_[0-9A-Za-z]{8,})?(?![\w/+-])")
_PREFIX = regex(r"(?<![\w/+.-])[A-Za-z][a-z0-9]{1,9}(_[a-z]{1,5})?\Z")
_CLASSES = tuple(map(regex, (r"[a-z]", r"[A-Z]", r"\d")))

_PUBLIC = regex(
    r"(?i:0x[0-9a-f]{40}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|([0-9a-f]{1,4}:){6,7}[0-9a-f.]{1,15})\Z"
    r"|Qm[1-9A-HJ-NP-Za-km-z]{44}\Z|AAAA[BCE]3N|LS0tLS1CRUdJTi|MI[IG]|(pk|phc)_|NRJS-|sha\d+-|RW[0-9A-Za-z+/]{54}\Z"
)
"""Addresses (coins, IPv6, IPFS), UUIDs, keys of SSH and minisign, of Stripe, PostHog and New Relic; PEM and DER are
shapes."""
_STORED = regex(
    r"\+?\{(?!(?i:noop|plain|clear))[A-Za-z][\w.-]*\}|\$?[A-Za-z][\w-]*(?::\w+)*\$[^$\s]+\$[^\s]{16}"
    r"|\$\w{1,12}\$[^\s]{16}|md5[0-9a-f]{32}\Z"
)
_SCHEME = regex(r"(?<!\$)\{(?!noop|plain|clear)[A-Za-z][\w.-]*\}\Z", re.IGNORECASE)
"""Stored forms of a password, before the value or in braces: PHC's string format, crypt(5), RFC 2307, PostgreSQL."""
_LEET = str.maketrans("013457@$", "oieastas")
_WORD_FOR_IT = regex(r"secret|passwor[dt]|passwd|token")
_DIGEST = regex(r"(?:[0-9A-Fa-f]{8})*")
_SIZES = frozenset({32, 40, 56, 64, 96, 128})  # hexadecimal digits of the digests of MD5, SHA-1 and SHA-2
_ARGUMENT = regex(r"[\"']\s*[,)]")
_CLAIMS = regex(r"\.(eyJ[\w-]+)\.", re.ASCII)
_PLAIN = regex(r"(?=.*[0-9A-Za-z]{9})[\w+/.~-]+={0,2}", re.ASCII)
_HEX = regex(r"[0-9a-f]+|[0-9A-F]+")
_SIGNED = regex(r"(?=.*[a-z])(?=.*[A-Z0-9].*[A-Z0-9])[\w!#-&(-/:-@\[\]^{|}~][!#-&(-\[\]-_a-~]*", re.ASCII)
_MIXED = (
    r"[A-Za-z][0-9]+[A-Za-z]+[0-9]|[0-9][A-Za-z]+[0-9]+[A-Za-z]"
    r"|[a-z][A-Z]{1,3}[a-z]{1,2}[A-Z0-9]|[A-Z][a-z]{1,2}[A-Z]{2}|[0-9][a-z]{1,2}[A-Z]|[a-z][A-Z]{1,2}[0-9]"
    r"|[A-Z][a-z][A-Z]{1,2}[a-z]|[A-Z]{2}[a-z][A-Z]"
    r"|[0-9][A-Za-z]*[!#$%&*?@^|~][0-9A-Za-z]|[0-9A-Za-z][!#$%&*?@^|~][A-Za-z]*[0-9]"
    r"|[0-9A-Za-z][!#$%&*?@^|~][!#$%&()*+,./:;<=>?@^|~-][0-9A-Za-z]"
)
"""Pieces that random values have and few lines of code: digits, cases or signs in turns."""
_NEEDED = (
    rf"(?i:{_SAYS.pattern.replace('i', '[iİ]')})([^\n]*(\n[ \t|:+=-]+)*\n?[^\n]*({_MIXED})"
    rf"|[0-9A-Za-z_-]*[\"']?[ \t:=>,(]{{1,6}}[\"']?{_OF_LETTERS}([\"'\s;,<.]|\z))"
)
_NEEDED_OF_OPTION, _NEEDED_OF_PREFIXED = rf"[\s\"'](-[apPw]|/p:)[^\n]{{0,90}}({_MIXED})", "[_-][0-9A-Za-z]{32}"
"""From a name that says secret to its value a text has the first; from an option, or behind a prefix, the others."""
_NO_VALUE = regex(
    r"://|\.\.\.|[$#%{]\{|(?i:example|hmacsha|pbkdf2|with(?:hmac|rsa|ecdsa))"
    r"|Eby8vdM02x|09d25e094faa6ca2|192b9bdd22ab9ed4|5f352379324c2246|mF_9\.B5f-4|2YotnFZFEjr1|tGzv3JOkF0XG"
    r"|7Fjfp0ZBr1Kt|Kz~8mXK1EalY|Q3AM3UQ867SPQ|zuf\+tfteSlsw|OSMM\+vkKUTCv"
)
"""A URL, a value that is cut or put together, an example, the name of an algorithm; keys that everybody knows: that of
Azure's emulator, those in RFC 6749, 6750 and 9449 and in the documents of FastAPI, Flask and MinIO, which many projects
copy."""
_REFERS = regex(r"(?:[$#%]\{|\{\{[ \t]*[\w.]*|(?:(?:[\w-]|\$\{[\w:.]+\})+:){3,})\Z")
_HAS_VALUE = regex(r"[\w.-]*[ \t]*[:=]")
_HAS_VALUE_IN_PATH = regex(r"[\w.-]*(?:[ \t]*=|:\s|\()")
_DIGIT_INSIDE = regex(r"[a-z]\d(?=[A-Za-z])")
_SHORT_HUMP = regex(r"[A-Z][a-z](?=[A-Z\d])")
_BETWEEN_WORDS = frozenset("_-./:~=")
_IS_MIXED = regex(_MIXED)
_SHORTEST, _SHORTEST_HEX, _READ = 12, 32, 200
_LEAST_UNLIKELY, _LEAST_LIKELY = 5, 9  # pairs of neighbors, these of 15
_OF_A_DIGIT = 3  # more of them, for one within letters, as in passwords that can be spoken
_REGULAR, _MOST = 0.4, 0.6  # shares of a value: characters that follow the one before, or before that
_FEW = 0.45  # share of different characters
_FOLLOWERS = """
    abcdgiklmnprstuvwxy baeijlorsu cacehikloqrstuy dadeilorsuy eacdefgilmnpqrstvwxy faefilorstu gaeghilnorsu haeiorty
    iabcdefgklmnoprstvz jaeosu kaeilnosy ladeiklostuvy mabeimnopsuy nacdefgikmnostuvy oabcdefgiklmnoprstuvwx
    paehiloprstuy qu racdegiklmnorstuvy sacehiklmopqstuwy tacehilorstuwxy uabcdegilmnprst vaeio waehinors xacept
    yenoprst zaeio
"""
"""Each letter, and those that follow it in words: 19 of 20 pairs in the words of 12,000 files of source code."""
_PAIRS_OF_WORDS = frozenset(row[0] + second for row in _FOLLOWERS.split() for second in row[1:])


class LikelySecret(NamedTuple):
    """A value that is likely secret: what it is likely to be, and where in the text it stands."""

    what: str
    value: str
    place: int


def find_random_values(text: str, *, is_test: bool = False) -> Iterator[LikelySecret]:
    """Yield the values that look random where a name, a URL or a prefix says that they are secret.

    A test makes keys and passwords of its own, which open nothing, unless it names a host or who issues them.
    """
    names_host = functools.cache(lambda: _OUTSIDE.search(text) is not None)
    for start, end in _names_in(text):
        is_within = text[start - 1 : start] in _OF_BASE64 or text[end : end + 1] in _ENDS_PIECE
        says_secret = not is_within and _says_secret(_with_word_before(text, start, end))
        is_own = is_test and says_secret and _ISSUED.isdisjoint(_words_of(text[start:end])) and not names_host()
        if says_secret and not (is_own or _is_reference(text, start) or _opens_nothing(text, start)):
            yield from _value_behind(text, start, end)
    for match in find_all(_URL, text):
        is_public = match[0][0] == "h" and _OF_SENTRY.fullmatch(match[1])  # in place of a user
        is_known = is_public or _NO_HOST.fullmatch(match[2])
        if not is_known and looks_random(unquote(match[1]), is_quoted=True):
            yield LikelySecret("a password in a URL", match[1], match.start(1))
    yield from _find_logins(text)
    for match in find_all(_PREFIXED, text, _NEEDED_OF_PREFIXED):
        prefix = _PREFIX.search(text, max(0, match.start() - 17), match.start())
        if prefix and all(one.search(match[0]) for one in _CLASSES) and looks_random(prefix[0] + match[0]):
            yield LikelySecret("a token", prefix[0] + match[0], prefix.start())


def _names_in(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each name begins and ends that has a word for a secret, if a value may be behind it."""
    first = 0
    for piece in pieces_of(text) if may_have(_NEEDED, text) else ():
        end = 0
        if may_have(_NEEDED, text[first : first + len(piece) + _NEAR]):
            for match in _SAYS.finditer(piece.replace("\u0130", "i").lower()):  # lowered, the others keep their places
                start, stop = match.span()
                if start >= end:
                    before, after = piece[max(end, start - _LONGEST_NAME) : start], piece[stop : stop + _LONGEST_NAME]
                    end = stop + len(after) - len(after.lstrip(_OF_NAMES))
                    start -= len(before) - len(before.rstrip(_OF_NAMES))
                    if may_have(_NEEDED, text[first + start : first + end + _NEAR]):
                        yield first + start, first + end
        first += len(piece)


def _find_logins(text: str) -> Iterator[LikelySecret]:
    for match in find_all(_LOGIN, text):
        password = match[2] or match[3] or _password_in(match[1])
        if looks_random(password, is_quoted=True) or _are_by_chance(password):
            yield LikelySecret("a login", match[0], match.start())
    for match in find_all(_OPTION, text, _NEEDED_OF_OPTION):
        if not _HEX.fullmatch(match[1]) and looks_random(match[1], is_quoted=True):
            yield LikelySecret("a login", match[0], match.start())


@functools.lru_cache(maxsize=1000)
def _says_secret(name: str) -> bool:
    """Tell whether an identifier says that its value is secret."""
    words = _words_of(name) if len(name) <= _LONGEST_NAME and "---" not in name else []
    if not any(map(_SECRET_WORD.fullmatch, words)) or words[-1] in _ENDS_OTHERWISE or "".join(words) == _NONCE:
        return False
    sure = max((at for at, word in enumerate(words) if _SURE.fullmatch(word)), default=0)
    opens = 0 if sure else max((at for at, word in enumerate(words[:-1]) if word in _OPENS), default=0)
    is_other = not (
        (_UNTRUE if words[-1] == "secret" else _UNTRUE | _DIGESTS).isdisjoint(words)
        and _OTHER.isdisjoint(words[sure or opens :])
        and (sure or _PUBLIC_WORDS.isdisjoint(words))
    )
    return not (is_other or _NO_NAME.match(name) or looks_random(name))


def _with_word_before(text: str, start: int, end: int) -> str:
    """Return a name, with the word in front of it that says otherwise: a `public key` is none."""
    if text[start - 1 : start] == " ":
        before = text[max(0, start - _LONGEST_NAME) : start - 1]
        word = before[len(before.rstrip(_OF_NAMES)) :]
        if word.lower() in _OTHER and (word, text[end : end + 2]) != ("ENCRYPTED", " '"):  # of SQL, which encrypts it
            return f"{word} {text[start:end]}"
    return text[start:end]


def _is_reference(text: str, start: int) -> bool:
    """Tell whether a name refers to something, in braces as `${NAME}` or within a path as `arn:aws:x:secret:name`.

    One with a value of its own is none, as `${NAME:-value}`, `{{ name: "value" }}` and `user:app:password=value`.
    """
    if text[max(0, start - _READ) : start].rstrip(f"{_OF_NAMES}. \t")[-1:] not in ("{", ":"):
        return False
    before = _REFERS.search(text, max(0, start - _READ), start)
    has_value = _HAS_VALUE_IN_PATH if before and before[0].endswith(":") else _HAS_VALUE
    return before is not None and has_value.match(text, start) is None


def _opens_nothing(text: str, start: int) -> bool:
    """Tell whether a name is in the query of a URL whose domain is kept for examples (RFC 2606), an index's search key,
    which each reader of the page gets, or what a signature covers beside the time.
    """
    before = text[max(0, start - _READ) : start]
    if text.startswith(("apiKey", "token"), start):
        around = before.rpartition("{")[2] + text[start : start + _READ].partition("}")[0]
        if any(all(map(around.__contains__, names)) for names in _OF_EACH_READER):
            return True
    return before[-1:] in ("?", "&") and _OF_NOBODY.search(before) is not None


def _words_of(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name[:_LONGEST_NAME])]


def _value_behind(text: str, start: int, end: int) -> Iterator[LikelySecret]:
    """Yield the random value of a name: in its line or the next, behind a few words."""
    near = _ENDS_SENTENCE.split(text[end : end + _NEAR], maxsplit=1)[0]
    near = "\n".join(_RULE.sub("", near).split("\n", 2)[:2])
    if not _IS_MIXED.search(near):
        letters = _LETTERS.match(near)
        if letters and any(map(_SURE.fullmatch, _words_of(text[start:end]))) and _are_by_chance(letters[1]):
            yield LikelySecret(f"a value of {text[start:end]}", letters[1], text.index(letters[1], end))
        return
    words, label, last = 0, "", ""
    for number, piece in enumerate(_PIECE.finditer(near)):
        glued = _LABEL.match(piece[0])
        label = glued[1] if glued else label
        if _is_another(label, near[: piece.start()]):
            return
        value, is_quoted = (piece[0][glued.end() :] if glued else piece[0]).rstrip(".:"), not number
        opened = _OPENED.search(near, 0, piece.start())
        if whole := (opened and _QUOTED.match(near, opened.start())) or (not number and _REST.match(near)):
            value, is_quoted = whole[whole.re.groups], True
        if len(value) >= _SHORTEST and not _is_reference(near, piece.start()):
            if _STORED.match(value) or _SCHEME.search(near, 0, piece.start()):
                return
            is_digest = len(value) in _SIZES and _ARGUMENT.match(near) and _DIGEST.fullmatch(value)
            may_be = is_digest or _may_be_any(text[start:end], value)
            if not may_be and looks_random(value, is_quoted=is_quoted):
                yield LikelySecret(f"a value of {text[start:end]}", value, text.index(value, end))
                return
        last = value or last
        words += any(map(str.isalnum, value)) and piece[0][0] != "-"
        if words == _MOST_BETWEEN or not _OF_VALUES.isdisjoint(_words_of(value)):
            return
        label = last if piece[0][-1] in ":=" else ""


def _is_another(label: str, before: str) -> bool:
    """Tell whether the label of a value says what else it is: in the next line any name of its own."""
    words = {*_words_of(label)}
    is_own = "\n" in before and not any(map(_SECRET_WORD.fullmatch, words))
    return not _OF_VALUES.isdisjoint(words) or (is_own and not words <= _GENERAL)


def _may_be_any(name: str, value: str) -> bool:
    """Tell whether a name and its value may be those of any key, as of a table or a cache."""
    words = _words_of(name)
    is_named = {*filter(_SECRET_WORD.fullmatch, words)} <= _ONLY_KEY and not any(map(_QUALIFIED_KEY.fullmatch, words))
    return is_named and not any(all(one.search(piece) for one in _CLASSES) for piece in re.split(r"[.:/]", value))


def looks_random(value: str, *, is_quoted: bool = False) -> bool:
    """Tell whether a value was made by chance: it has no words, is no number, placeholder or row of characters.

    A quoted one may have any characters, others are code then.
    """
    start = value[:_READ]
    if len(value) < _SHORTEST or not _IS_MIXED.search(start) or _NO_VALUE.search(value):
        return False
    if not (_PLAIN.fullmatch(start) or (is_quoted and _SIGNED.fullmatch(start))) or _PUBLIC.match(value):
        return False
    if _HEX.fullmatch(start.removeprefix("0x")) and len(value) < _SHORTEST_HEX:
        return False
    if _says_itself(value) or _is_regular(start) or _has_words(start):
        return False
    return not (_is_text_in_base64(value) or _is_plain_jwt(value))


def _are_by_chance(value: str) -> bool:
    """Tell whether a value is 16 letters, of which few neighbors are neighbors in words."""
    pairs = itertools.pairwise(value.replace(" ", ""))
    is_likely = (f"{first}{second}" in _PAIRS_OF_WORDS for first, second in pairs)
    return re.fullmatch(_OF_LETTERS, value) is not None and sum(is_likely) < _LEAST_LIKELY


def _says_itself(value: str) -> bool:
    """Tell whether a value is little more than a word for what it is: `S3cretP@ssw0rd!`."""
    rest, found = _WORD_FOR_IT.subn("", value.lower().translate(_LEET))
    return found > 0 and len(rest) < _SHORTEST


def is_mixed(value: str) -> bool:
    """Tell whether digits, cases or signs take turns in a value, as in no placeholder made of words."""
    return _IS_MIXED.search(value) is not None


def is_row(value: str) -> bool:
    """Tell whether most of a value is a row such as `abcdef`, `xxxx`, as in a placeholder."""
    return _steps(value, 1) > len(value) * _MOST


def _is_regular(value: str) -> bool:
    """Tell whether a value is a row such as `abcdef`, `000102`, `xxxx`."""
    steps = max(_steps(value, 1), _steps(value, 2))
    return steps > len(value) * _REGULAR or len({*value}) < min(len(value), 16) * _FEW


def _steps(value: str, distance: int) -> int:
    """Count the characters that are the one at a distance before, or next to it in ASCII."""
    codes = [*map(ord, value)]
    return sum(abs(a - b) <= 1 for a, b in zip(codes, codes[distance:], strict=False))


def _has_words(value: str) -> bool:
    """Tell whether neighbors in a value are often neighbors in words, too."""
    likely, unlikely = 0, len(_SHORT_HUMP.findall(value))
    for first, second in itertools.pairwise(value):
        if first.isalpha() and second.isalpha():
            if first.isupper() or second.islower():
                is_likely = f"{first}{second}".lower() in _PAIRS_OF_WORDS
                likely, unlikely = likely + is_likely, unlikely + (not is_likely)
        elif not (first.isdigit() and second.isdigit()):
            unlikely += _BETWEEN_WORDS.isdisjoint((first, second))
    unlikely += _OF_A_DIGIT * len(_DIGIT_INSIDE.findall(value)) if value.isalnum() else 0
    return unlikely < max(_LEAST_UNLIKELY, likely)


def _is_text_in_base64(value: str) -> bool:
    """Tell whether a value is base64 of printable text that has no random piece itself."""
    text = (text_in_base64(value) or "\0").strip()
    return text.isprintable() and not any(looks_random(piece, is_quoted=True) for piece in re.split(r"[\s:]+", text))


def _password_in(value: str) -> str:
    """Return the password of a login in base64, "" where it is none."""
    text = text_in_base64(value) or ""
    return text.partition(":")[2] if text.isascii() else ""


def _is_plain_jwt(value: str) -> bool:
    """Tell whether a value is a token of JWT that says nothing of who gave it, to whom and until when, or of a demo."""
    claims = _CLAIMS.search(value)
    try:
        text = json.loads(base64.urlsafe_b64decode(claims[1] + "==")) if claims else {}
    except ValueError:
        return False
    return bool(text) and (text.keys().isdisjoint({"aud", "exp", "iss"}) or "demo" in str(text.get("iss")))
