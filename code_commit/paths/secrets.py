"""Secrets, told by the name of a file or by its content."""

import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator

from code_commit.paths.escapes import without_escapes
from code_commit.paths.gates import may_have
from code_commit.paths.random_values import LikelySecret, find_random_values, is_row
from code_commit.regex import regex

_COPY = r"([._-](bak|backup|copy|old|orig|prev|saved?|\d+)|~)*"
_DATA = r"([_-][^.]*)?(\.(cfg|conf|csv|db|enc|ini|json|plist|properties|tfrc|toml|txt|xml|ya?ml))*"
_KEY = (
    rf".*\.(age|jks|kdbx?|key|keystore|p12|p8|pem|pfx|ppk){_COPY}|.*\.tfstate(\..*)?"
    rf"|(.*_)?(rsa|dsa|ecdsa|ed25519){_COPY}|id_(rsa|dsa|ecdsa|ed25519)[^.]*{_COPY}|id_[^.]*\.(bak|old)"
    r"|\.(boto|dockercfg|git-credentials|htpasswd|my\.cnf|pgpass|pypirc|s3cfg|vault-token)|[._]netrc|\..*_history"
)
_PUBLIC_KEY = (
    r"(.*[._-])?(ca|cacerts?|certs?|certificates?|chain|crl|csr|dhparams?|fullchain)(\d+|[_-](?!.*(key|priv)).*)?\.pem"
    r"|(.*[._-])?(pub|public)([_-]?key)?\.(key|pem)"
)
_LOGIN = (
    r"\.env(rc|[^a-z].*)?|.*\.env|env|http-client\.private\.env\.json"
    rf"|.*\.tfvars(\.json)?{_COPY}|secret_token\.rb|.*\.secret\.exs|auth\.json"
    rf"|(\.?(.*[_-])?credentials|\.?secrets|.*\.kubeconfig|kubeconfig){_DATA}{_COPY}"
)
_PLACES = """
    /.config/gh/hosts.yml /.config/glab-cli/config.yml /.config/hub /.docker/config.json /.kube/config
    /.m2/settings-security.xml /.m2/settings.xml
"""
_LOGINS_IN_FOLDERS = tuple(_PLACES.split())
"""Sources of these tables: GitHub's templates for .gitignore (Node, Phoenix, Rails, Terraform, KeePass, PuTTY ...), the
signatures of gitrob, and the manuals of the tools."""
_EXAMPLE = (
    r"(.*[/._-])?(dist|example|sample|template)([._-][^/]*)?"
    r"|(.*/)?(i18n|l10n|lang|languages?|locales?|messages|schemas?|templates|translations)/.*"
)
_PIECES = """
    .age .boto .jks .kdb .key .p12 .p8 .pem .pfx .ppk .tfstate .tfvars auth.json credentials dockercfg dsa ed25519 env
    htpasswd _history id_ kubeconfig my.cnf netrc pgpass pypirc rsa s3cfg secret vault-token
"""
_IN_EVERY_NAME = tuple(_PIECES.split())
"""A name without any of these needs no pattern; the patterns take milliseconds to compile."""
_LINE_OF_NPM = r"(?m:^)(//\S+:)?"
_IS = r"[\"']?\s*(=>?|:)\s*[\"']?"
_SECRET_SHAPES = {
    r"----[- ]BEGIN[ +][A-Z0-9 +]*PRIVATE[ +]KEY([ +]BLOCK)?[- ]----(-?[\t\n\r -,.-~]){0,200}?[0-9A-Za-z+/]{40}"
    r"|\A-----BEGIN [A-Z0-9 ]*PRIVATE KEY": ("a private key", "-----BEGIN SSH2"),
    r"LS0tLS1CRUdJTi[0-9A-Za-z+/]{0,24}(BSSVZBVE|QUklWQVRF|UFJJVkFUR)[0-9A-Za-z+/]{60}": (
        "a private key in base64",
        "LS0tLS1CRUdJTi",
    ),
    r"\b(M[A-H][AEIMQUYcgkosw048]CAQ(Aw|EE)"
    r"|MI[E-H][0-9A-Za-z+/]AgE[AB]|MI[I-L][0-9A-Za-z+/]{2}[AQgw]IBA[AD])[0-9A-Za-z+/]{40}": (
        "a private key",
        "CAQAw CAQEE AgEA AgEB IBAA IBAD",
    ),
    r"\bPrivate-Lines: \d+(\\[nr]|[^0-9A-Za-z/])*[0-9A-Za-z+/]{40}": ("a private key of PuTTY", "Private-Lines:"),
    r"\b[dk][\"']?\s*:\s*[\"'][0-9A-Za-z_-]{22}": ("a private key of JWK", "\"kty\" 'kty' kty:"),
    r"\bAGE-SECRET-KEY-1[0-9A-Z]{58}": ("a private key", "AGE-SECRET-KEY-1"),
    r"\bA[KS]IA[A-Z2-7]{16}\b": ("a key of AWS", "AKIA ASIA"),
    rf"(AWS_SECRET(_ACCESS)?_KEY|aws_secret(_access)?_key|[sS]ecretAccessKey){_IS}[0-9A-Za-z/+]{{40}}"
    rf"|(AWS_SESSION_TOKEN|aws_session_token|[sS]essionToken){_IS}[0-9A-Za-z/+=]{{100}}": (
        "a key of AWS",
        "AWS_SECRET aws_secret ecretAccessKey AWS_SESSION aws_session essionToken",
    ),
    r"\bAccountKey=[0-9A-Za-z+/]{86}==|\bsig=[0-9A-Za-z+/]{43}=": ("a key of Azure", "AccountKey= sig="),
    r"\bAIza[0-9A-Za-z_-]{35}|\bGOCSPX-[0-9A-Za-z_-]{28}|\bAQ\.Ab[0-9A-Za-z_-]{40}|\bya29\.[0-9A-Za-z_-]{40}": (
        "a key of Google",
        "AIza GOCSPX- AQ.Ab ya29.",
    ),
    r"\bhv[brs]\.[0-9A-Za-z_-]{24}": ("a token of Vault", "hvb. hvr. hvs."),
    r"\b\d{8,10}:AA[0-9A-Za-z_-]{33}": ("a token of Telegram", ":AA"),
    r"\bdiscord(app)?\.com/api/webhooks/\d+/[0-9A-Za-z_-]{60}": ("a webhook of Discord", "/api/webhooks/"),
    r"\b(dapi|key-|shp(at|ca|pa|ss)_|SK)[0-9a-f]{32}\b|\b(do[opr]_v1|pul|rubygems|sbp)[_-][0-9a-f]{40}"
    r"|\bpat[0-9A-Za-z]{14}\.[0-9a-f]{64}|\bdckr_[op]at_[0-9A-Za-z_-]{27}": (
        "a token",
        "dapi key- shpat_ shpca_ shppa_ shpss_ SK doo_v1 dop_v1 dor_v1 pul- rubygems_ sbp_ pat dckr_",
    ),
    r"\bsb_secret_[0-9A-Za-z_-]{31}|\bwhsec_[0-9A-Za-z+/]{32}|\bpcsk_[0-9A-Za-z]{5,8}_[0-9A-Za-z]{40}"
    r"|\bdp\.[a-z]{2,5}\.[0-9A-Za-z]{40}|\bPMAK-[0-9a-f]{24}-[0-9a-f]{34}|\bNRAK-[0-9A-Z]{27}"
    r"|\blsv2_[a-z]{2}_[0-9a-f]{32}|\bsntryu_[0-9a-f]{64}|\bAKCp[0-9A-Za-z]{69}|\bATATT3[0-9A-Za-z_=-]{150}": (
        "a token",
        "sb_secret_ whsec_ pcsk_ dp. PMAK- NRAK- lsv2_ sntryu_ AKCp ATATT3",
    ),
    r"\bgh[pousr]_(\d+_)?[0-9A-Za-z]{36}|\bgithub_pat_[0-9A-Za-z_]{60}": (
        "a token of GitHub",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
    ),
    r"\bgl(pat|[a-z]{0,5}t|agent)-[0-9A-Za-z_-]{20}": (
        "a token of GitLab",
        "glpat- glrt- gldt- glcbt- glptt- glft- glimt- glsoat- glffct- glwt- glagent-",
    ),
    r"\bhf_[0-9A-Za-z]{34}\b": ("a key of Hugging Face", "hf_"),
    rf"\bnpm_[0-9A-Za-z]{{36}}\b|{_LINE_OF_NPM}_auth(Token)?=[0-9A-Za-z+/-]{{12}}": ("a login of npm", "npm_ _auth"),
    rf"{_LINE_OF_NPM}_password=[0-9A-Za-z+/=]{{8}}": ("a login of npm", "_password="),
    r"(?m:^)//\S+:_password\s*=\s*\"?[0-9A-Za-z+/=]{8}": ("a login of npm", ":_password"),
    r"\bnpmAuth(Token|Ident):\s*[\"']?[0-9A-Za-z+/:_-]{12}": ("a login of npm", "npmAuth"),
    r"\bpypi-AgE[0-9A-Za-z_-]{50}": ("a token of PyPI", "pypi-AgE"),
    r"\bmac\"?\s*[:=]\s*\"?ENC\[AES256_GCM,": ("what SOPS encrypts", "ENC[AES256_GCM,"),
    r"\bSG\.[0-9A-Za-z_-]{22}\.[0-9A-Za-z_-]{43}": ("a key of SendGrid", "SG."),
    r"\bxox[abeprs]-\d+-[0-9A-Za-z-]{20}|\bxapp-\d-[0-9A-Za-z-]{40}"
    r"|\bhooks\.slack\.com/services/T[0-9A-Z]+/B[0-9A-Z]+/[0-9A-Za-z]{20}": (
        "a token of Slack",
        "xox xapp- hooks.slack.com",
    ),
    r"\b[sr]k_live_[0-9A-Za-z]{20}": ("a key of Stripe", "k_live_"),
    r"\bsk-((proj|svcacct|admin|ant|or)-[0-9A-Za-z_-]{40}|[0-9A-Za-z]{32})": ("an API key", "sk-"),
}
"""The shapes of secrets, for Python's and Rust's regular expressions; the kind of each, and texts of which it has one.
Amazon's and age's are from gitleaks."""
ENCRYPTING_FILTERS = r"(?s)git-crypt(-.*)?|crypt(_.*)?|sops.*"
"""The filters of git-crypt, of transcrypt (`crypt`, with its contexts), and what SOPS users call theirs."""
_LETTERS_FIRST = r"\\b([\w=-]{2,})(?=[\[\\(])", r"\1(?<!\\w\1)"
"""`\\b` looked for behind the letters: where the shape begins with them, Python finds it in a twentieth of the time."""
_TEST = regex(
    r"(?i)(^|/)([^/]+[._-])?(tests?|specs?|testdata|fixtures?|__tests__|phpunit)([._-][^/]*)?(/|\Z)"
    r"|(?-i:[a-z0-9](Tests?|Spec)\.\w+\Z)"
)
_PUBLISHED = regex("EXAMPLE|Eby8vdM02x")  # in the keys of Amazon's documents; that of Azure's emulator
_TAIL = 24  # characters of a token that are random in a true one
_PUBLIC_BLOCKS = regex(
    r"\s*(-----BEGIN (([A-Z0-9]+ )*PUBLIC KEY( BLOCK)?|([A-Z0-9]+ )?CERTIFICATE)-----\r?\n"
    r"((Charset|Comment|Hash|Version): .*\n)*[\s+/0-9=A-Za-z]*-----END \2-----\s*)+"
)


def is_secret_name(path: str) -> bool:
    """Tell whether a file is likely to hold a secret: `prod.env`, but no example, certificate or source code."""
    name = path.rpartition("/")[2]
    if not name.isascii() or any(map(name.lower().__contains__, _IN_EVERY_NAME)):
        if _is_like(_KEY, name):
            return not _is_like(_PUBLIC_KEY, name)
        if _is_like(_LOGIN, name):
            return not _is_like(_EXAMPLE, path)
    return f"/{path}".lower().endswith(_LOGINS_IN_FOLDERS)


def is_public_key(text: str) -> bool:
    """Tell whether a text is nothing but public keys and certificates."""
    return _PUBLIC_BLOCKS.fullmatch(text) is not None


def _is_like(pattern: str, name: str) -> bool:
    return re.fullmatch(pattern, name, re.IGNORECASE | re.DOTALL) is not None


def explain_secret(path: str, texts: Iterable[str], known: Callable[[], str]) -> str | None:
    """Return why a file is a secret, which no prompt shows and no answer changes; None where it is not.

    `texts` are its contents, before a change first; `known` gives the text that the LLM was sent or wrote.
    """
    before, *_ = texts = list(texts)
    if is_secret_name(path) and not is_public_key(before):
        return None if before.strip() and before.rstrip("\n") in known() else "a secret, judging by its name"
    found = next(filter(None, (find_secret(text, known, path) for text in texts)), None)
    return f"a secret, judging by its content ({found})" if found else None


def find_secret(text: str, known: Callable[[], str] = str, path: str = "") -> str | None:
    """Return the kind and the line of a secret in the text that is not in the `known` text; None where none is."""
    is_test = _TEST.search(path) is not None
    if _has_none(text, is_test=is_test):
        return None
    said = functools.cache(lambda: without_escapes(known()))
    found = next((each for each in _find_likely(text, is_test=is_test) if each.value not in said()), None)
    return f"{found.what} in line {_line_of(found.place, text)}" if found else None


@functools.lru_cache(maxsize=1)  # a file is searched when it is verified, and for its diff
def _has_none(text: str, *, is_test: bool) -> bool:
    return next(_find_likely(text, is_test=is_test), None) is None


def _find_likely(text: str, *, is_test: bool) -> Iterator[LikelySecret]:
    plain = without_escapes(text)
    yield from _find_shapes(plain)
    yield from find_random_values(plain, is_test=is_test)


def _line_of(place: int, text: str) -> int:
    """Return the number of the line of the text with a place in what is left of it without its escapes."""
    ends = itertools.accumulate(len(without_escapes(line)) + 1 for line in text.split("\n"))
    return 1 + sum(end <= place for end in ends)


def _find_shapes(text: str) -> Iterator[LikelySecret]:
    if not may_have("|".join(_SECRET_SHAPES), text):
        return
    for shape, (what, texts) in _SECRET_SHAPES.items():
        if any(map(text.__contains__, texts.split())) and may_have(shape, text):
            for match in re.finditer(re.sub(*_LETTERS_FIRST, shape), text):
                is_placeholder = "private" not in what and is_row(match[0][-_TAIL:])
                if not (is_placeholder or _PUBLISHED.search(match[0])):
                    yield LikelySecret(what, match[0], match.start())
