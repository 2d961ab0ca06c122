"""What looks like somebody's secret, by the name of a file or by its content."""

import functools
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic_core import SchemaValidator

_SECRET_NAMES = re.compile(
    r"\.env(?!.*\.(example|sample|template|dist)$).*|.*\.(pem|key|p12|pfx|jks|keystore|kdbx|tfstate)"
    r"|id_(rsa|dsa|ecdsa|ed25519)[^.]*|[._]netrc|\.pypirc|\.git-credentials|\.htpasswd|\.pgpass|\.dockercfg",
    re.IGNORECASE,
)
_SECRET_SHAPES = {
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----(\\[nr]|[^0-9A-Za-z+/])*([0-9A-Za-z-]+: .*\n\s*)*[0-9A-Za-z+/]{40}"
    r"|\A-----BEGIN [A-Z0-9 ]*PRIVATE KEY": "a private key",
    r"\bAKIA[A-Z2-7]{16}\b": "a key of AWS",
    r"\bAccountKey=[0-9A-Za-z+/]{86}==": "a key of Azure",
    r"\bAIza[0-9A-Za-z_-]{35}|\bGOCSPX-[0-9A-Za-z_-]{28}": "a key of Google",
    r"\bgh[pousr]_[0-9A-Za-z]{36}|\bgithub_pat_[0-9A-Za-z_]{60}": "a token of GitHub",
    r"\bglpat-[0-9A-Za-z_-]{20}": "a token of GitLab",
    r"\bhf_[0-9A-Za-z]{34}\b": "a key of Hugging Face",
    r"\bnpm_[0-9A-Za-z]{36}\b|(?m:^)(//\S+:)?_auth(Token)?=[0-9A-Za-z+/-]{12}": "a login of npm",
    r"\bpypi-AgE[0-9A-Za-z_-]{50}": "a token of PyPI",
    r"\bSG\.[0-9A-Za-z_-]{22}\.[0-9A-Za-z_-]{43}": "a key of SendGrid",
    r"\bxox[abeprs]-\d+-[0-9A-Za-z-]{20}": "a token of Slack",
    r"\b[sr]k_live_[0-9A-Za-z]{20}": "a key of Stripe",
    r"\bsk-((proj|svcacct|admin|ant|or)-[0-9A-Za-z_-]{40}|[0-9A-Za-z]{32})": "an API key",
}
"""The shapes of secrets, in what Python's and Rust's regular expressions have in common."""
_IN_EXAMPLES = "EXAMPLE"  # at the end of the keys in Amazon's documents


def is_secret_name(name: str) -> bool:
    """Tell whether a file of this name is likely to hold a secret: `.env`, `server.pem`, `id_ed25519`."""
    return _SECRET_NAMES.fullmatch(name) is not None


def find_secret(text: str) -> str | None:
    """Return what a text holds that looks like somebody's secret, and in which line; None where it looks like none."""
    if not _any_shape().isinstance_python(text):
        return None
    for shape, what in _SECRET_SHAPES.items():
        for match in re.finditer(shape, text):
            if not match[0].endswith(_IN_EXAMPLES):
                return f"{what} in line {text.count(chr(10), 0, match.start()) + 1}"
    return None


@functools.cache
def _any_shape() -> "SchemaValidator":
    """Return what finds any of the shapes by Rust's regular expressions, which pydantic brings along, in one pass."""
    from pydantic_core import SchemaValidator, core_schema

    return SchemaValidator(core_schema.str_schema(pattern="|".join(_SECRET_SHAPES), regex_engine="rust-regex"))
