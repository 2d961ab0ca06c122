"""What nobody showed the LLM: no reason quotes it, no answer changes a secret, and no prompt, diff or page shows one."""

import base64
import html
import json
import random
import re
import string
import urllib.parse
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Run, git, recorded, the_log, tree
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from measure import is_linear

import code_commit
from code_commit.paths.random_values import find_random_values, is_row, looks_random
from code_commit.paths.secrets import _SECRET_SHAPES, explain_secret, find_secret

AWS = "AKIA" + "Q7" * 8
TOKEN = f'token = "{AWS}"\n'
RIGHT = "^^^ok.txt\nok\n^^^end\n"
WORDS = ["--sandbox", "off", "--answer-format", "edits", "--max-repairs", "1"]


def lay(root: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(content)
    git(root, "add", "-Af", *files)
    git(root, "commit", "-qm", "more")


def texts_of(folder: Path) -> str:
    """Return all that a log holds but for the originals and the answers."""
    files = [path for path in folder.rglob("*") if path.is_file() and "snapshot" not in path.parts]
    return "".join(path.read_text("utf-8", "replace") for path in files)


def edit(path: str, find: str) -> str:
    return f"^^^{path}\n^^^find\n{find}\n^^^replace\nnew\n^^^end\n"


PASSWORD = "DB_PASSWORD=hunter2\n"
UNSEEN = {
    "a name": (".env", PASSWORD, edit(".env", "DB_PASSWORD=x"), []),
    "a key": ("tls/x.pem", PASSWORD, edit("tls/x.pem", "DB_PASSWORD=x"), []),
    "not in the rollup": ("setup.cfg", PASSWORD, edit("setup.cfg", "DB_PASSWORD=x"), []),
    "ignored": ("local.cfg", PASSWORD, edit("local.cfg", "DB_PASSWORD=x"), []),
    "protected": ("setup.cfg", PASSWORD, edit("setup.cfg", "DB_PASSWORD=x"), ["--protect", "*.cfg"]),
    "allowed": (".env", PASSWORD, edit(".env", "DB_PASSWORD=x"), ["--allow", ".env"]),
    "after a line that was shown": ("setup.cfg", f"not yet\n{PASSWORD}", edit("setup.cfg", "not yet\nDB_PASSWORD=x"), []),
    "written since": ("ok.txt", f"not yet\n{PASSWORD}", edit("ok.txt", "DB_PASSWORD=x"), []),
    "the end of a range": (
        "setup.cfg", f"not yet\n{PASSWORD}", edit("setup.cfg", "not yet\n^^^to\nDB_PASSWORD=x"), [],
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("path", "content", "answer", "options"), UNSEEN.values(), ids=UNSEEN)
def test_a_rejected_edit_quotes_nothing_that_the_llm_was_not_shown(
    path, content, answer, options, project_folder: Path, run_code_commit: Run
):
    (project_folder / ".gitignore").write_text("/agent-config\n/local.cfg\n")
    lay(project_folder, {path: content})
    done = run_code_commit(project_folder, *WORDS, *options, *recorded(project_folder, answer, answer))
    assert done.returncode == 4, done.stderr
    page = run_code_commit(project_folder, "log", "--html", "-").stdout
    assert "hunter2" not in done.stderr + page + texts_of(the_log(project_folder))
    assert (project_folder / path).read_text() == content


def test_what_was_shown_is_quoted_though_the_rest_of_the_file_was_not(project_folder: Path, run_code_commit: Run):
    lay(project_folder, {"ok.txt": f"not yet\n{PASSWORD}"})
    answer = edit("ok.txt", "not now")
    done = run_code_commit(project_folder, *WORDS, "--verbose", *recorded(project_folder, answer, answer))
    assert "says 'not yet' and not 'not now'" in " ".join(done.stderr.split()), done.stderr


CHANGES = {
    "overwritten": "^^^src/aws.py\ntoken = 1\n^^^end\n",
    "deleted": "^^^src/aws.py\n^^^delete\n",
    "edited": edit("src/aws.py", "x = 1"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_no_answer_changes_a_secret_by_its_content(change, project_folder: Path, run_code_commit: Run):
    lay(project_folder, {"src/aws.py": f"x = 1\n{TOKEN}"})
    before = tree(project_folder)
    options = [*WORDS, "--allow", "*.py", "--allow", "src/", "--on-rejected", "stop"]
    done = run_code_commit(project_folder, *options, *recorded(project_folder, change + RIGHT))
    assert (done.returncode, tree(project_folder)) == (4, before), done.stderr
    (reason,) = [
        each
        for each in json.loads((the_log(project_folder) / "run.json").read_text())["attempts"][0]["rejections"]
        if each["path"] == "src/aws.py"
    ]
    assert (reason["rule"], "a key of AWS in line 2" in reason["message"]) == ("secret", True)
    assert AWS not in texts_of(the_log(project_folder)) + done.stderr


def test_no_answer_changes_what_git_crypt_encrypts(project_folder: Path, run_code_commit: Run):
    git(project_folder, "config", "filter.git-crypt.clean", "cat")
    lay(project_folder, {".gitattributes": "*.ini filter=git-crypt\n", "a.ini": "password = 1\n"})
    answer = recorded(project_folder, edit("a.ini", "password = 1") + RIGHT)
    done = run_code_commit(project_folder, *WORDS, "--verbose", "--on-rejected", "stop", *answer)
    assert (done.returncode, "a.ini: is encrypted in git: leave" in " ".join(done.stderr.split())) == (4, True), (
        done.stderr
    )
    assert run_code_commit(project_folder, "rollup", "--include", "a.ini").returncode == 0
    assert run_code_commit(project_folder, *WORDS, *answer).returncode == 0


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_include_names_is_none(change, project_folder: Path, run_code_commit: Run):
    lay(project_folder, {"src/aws.py": f"x = 1\n{TOKEN}", ".env": PASSWORD})
    assert run_code_commit(project_folder, "rollup", "--include", "src/aws.py", "--include", ".env").returncode == 0
    answer = change + RIGHT + edit(".env", "DB_PASSWORD=hunter2")
    done = run_code_commit(project_folder, *WORDS, *recorded(project_folder, answer))
    assert done.returncode == 0, done.stderr
    diff = run_code_commit(project_folder, "diff").stdout
    assert ("not shown" in diff, "-DB_PASSWORD=hunter2" in diff, "-x = 1" in diff) == (False, True, True)


@pytest.mark.slow
@pytest.mark.parametrize("change", [CHANGES["edited"], CHANGES["deleted"]])
def test_where_allow_names_the_file_it_may_change_and_nobody_is_shown_it(
    change, project_folder: Path, run_code_commit: Run
):
    lay(project_folder, {"src/aws.py": f"x = 1\n{TOKEN}"})
    options = [*WORDS, "--allow", "src/aws.py", "--allow", "ok.txt"]
    done = run_code_commit(
        project_folder, *options, *recorded(project_folder, change + "^^^ok.txt\nno\n^^^end\n", RIGHT)
    )
    assert done.returncode == 0, done.stderr
    diff = run_code_commit(project_folder, "diff").stdout
    page = run_code_commit(project_folder, "log", "--html", "-").stdout
    assert diff.endswith("# src/aws.py (a secret, not shown)\n")
    assert AWS not in texts_of(the_log(project_folder)) + diff + page + done.stderr


@pytest.mark.slow
def test_a_secret_that_a_build_writes_into_a_file_of_the_answer_stays_there(project_folder: Path, run_code_commit: Run):
    lay(
        project_folder,
        {
            "build.sh": f"#!/bin/sh\ncat ok.txt | grep -q '^ok$' || echo '{TOKEN.strip()}' >>ok.txt\ngrep -qx ok ok.txt\n"
        },
    )
    done = run_code_commit(project_folder, *WORDS, *recorded(project_folder, "^^^ok.txt\nno\n^^^end\n", RIGHT))
    assert done.returncode == 4, done.stderr
    log = the_log(project_folder)
    assert AWS in (project_folder / "ok.txt").read_text()
    outputs = [run_code_commit(project_folder, *words).stdout for words in (["diff"], ["log", "--html", "-"])]
    assert AWS not in texts_of(log) + "".join(outputs) + done.stderr
    assert "(a secret, not shown)" in outputs[0]


def test_what_looks_like_a_secret_in_an_answer_is_shown_and_may_be_changed(project_folder: Path, run_code_commit: Run):
    """Else an answer could hide a change by such a line."""
    first = f"^^^test_keys.py\n{TOKEN}import os\n^^^end\n"
    answers = recorded(project_folder, first, edit("test_keys.py", "import os") + RIGHT)
    done = run_code_commit(project_folder, *WORDS, *answers)
    assert done.returncode == 0, done.stderr
    assert (project_folder / "test_keys.py").read_text() == f"{TOKEN}new\n"
    log = the_log(project_folder)
    assert f"--- FILE REPLACEMENT test_keys.py ---\n{TOKEN}" in (log / "2-query.txt").read_text()
    for diff in (run_code_commit(project_folder, "diff").stdout, (log / "1-changes.diff").read_text()):
        assert f"+{TOKEN}" in diff


BEFORE = st.sampled_from(
    ["", " ", "\n", "_", "é", "\u0301", "\u200d", "x", "sk-proj-", "xsk-proj-", "npm_", "//a.example/:", "kty: "]
)
AFTER = st.sampled_from(["", "\n", "_", "é", "\u0301", "EXAMPLE", "A" * 40, "\nsk-" + "a" * 32])


@pytest.mark.slow
@pytest.mark.parametrize("shape", _SECRET_SHAPES)
@given(st.data())
@examples(max_examples=20)
def test_each_shape_is_found_that_a_plain_search_finds(shape, data):
    known, text = (data.draw(BEFORE) + data.draw(st.from_regex(shape)) + data.draw(AFTER) for _ in range(2))
    found = next(
        (
            f"{what} in line {text.count(chr(10), 0, match.start()) + 1}"
            for each, (what, texts) in _SECRET_SHAPES.items()
            if any(map(text.__contains__, texts.split()))
            for match in re.finditer(each, text)
            if not (re.search("EXAMPLE|Eby8vdM02x", match[0]) or match[0] in known)
            if "private" in what or not is_row(match[0][-24:])
        ),
        None,
    )
    values = (value for value in find_random_values(text) if value.value not in known)
    told = find_secret(text, lambda: known)
    assert told == (found or next((f"{what} in line {text.count(chr(10), 0, at) + 1}" for what, _, at in values), None))


LETTERS = string.ascii_letters + string.digits
ALPHABETS = [LETTERS, string.ascii_lowercase + string.digits, f"{LETTERS}+/", f"{LETTERS}-_", "0123456789abcdef"]


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_nearly_every_random_value_of_32_characters_looks_random(alphabet):
    dice = random.Random(alphabet)
    values = ["".join(dice.choices(alphabet, k=32)) for _ in range(200)]
    assert sum(map(looks_random, values)) >= 190
    found = [find_secret(f"x = 1\nAPI_TOKEN = '{value}'\n") for value in values]
    assert found.count("a value of API_TOKEN in line 2") >= 190


def of_json(text: str) -> str:
    return json.dumps(text)[1:-1]


def with_codes(form: str, characters: str = "\"'=:&\t\n") -> Callable[[str], str]:
    return lambda text: "".join(form.format(ord(char)) if char in characters else char for char in text)


LAYERS: dict[str, Callable[[str], str]] = {
    "a string of JSON": of_json,
    "JSON in JSON": lambda text: of_json(of_json(text)),
    "JSON in JSON in JSON": lambda text: of_json(of_json(of_json(text))),
    "JSON with code points": with_codes("\\u{:04x}"),
    "JSON with code points in JSON": lambda text: of_json(with_codes("\\u{:04X}")(text)),
    "a string of JavaScript": with_codes("\\u{{{:x}}}"),
    "a string of C": with_codes("\\x{:02x}"),
    "a string of awk": with_codes("\\{:03o}"),
    "a string of PowerShell": lambda text: text.replace('"', '`"'),
    "HTML": html.escape,
    "HTML in HTML": lambda text: html.escape(html.escape(text)),
    "HTML with decimal numbers": with_codes("&#{};"),
    "HTML with hexadecimal numbers": with_codes("&#x{:X};"),
    "JSON in HTML": lambda text: html.escape(of_json(text)),
    "a URL": urllib.parse.quote,
    "a URL in a URL": lambda text: urllib.parse.quote(urllib.parse.quote(text)),
    "a form": urllib.parse.quote_plus,
}
NAMED = {
    "a value of api_key": lambda value: f'{{"api_key": "{value[:40]}"}}',
    "a value of DB_PASSWORD": lambda value: f"DB_PASSWORD = '{value[:24]}'",
    "a key of AWS": lambda value: f'"aws_secret_access_key": "{value[:40]}"',
    "a private key of JWK": lambda value: f'{{"kty": "EC", "d":\n"{value[:43]}"}}',
    "a private key": lambda value: f"-----BEGIN PRIVATE KEY-----\n{value}\n-----END PRIVATE KEY-----",
}


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
@pytest.mark.parametrize(("what", "line"), NAMED.items(), ids=NAMED)
def test_a_secret_is_found_behind_the_escapes_of_a_text_in_a_text(what, line, layer):
    dice = random.Random(what)
    for _ in range(5):
        text = f"[\n{layer('x = 1')} \\n\n{layer(line(''.join(dice.choices(LETTERS, k=64))))}\n]\n"
        assert (told := find_secret(text)) == f"{what} in line 3", text
        assert told in (explain_secret("a.ipynb", [text], str) or "")
        assert find_secret(text, lambda text=text: text) is None, "the LLM knows it"


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_escapes_make_no_secret_of_what_is_none(layer):
    text = (
        'SECRET_KEY = os.environ["SECRET_KEY"]\npassword: "changeme"\ntoken_hash = "9f86d081884c7d659a2feaa0c55ad015"\n'
    )
    assert find_secret(layer(text)) is None


@pytest.mark.parametrize(
    "line",
    [
        "https://a.acme.io/?client_secret={}&grant_type=client_credentials",
        "otpauth://totp/me?secret={}\\u0026issuer=a",
        "smtp://a:{}%2Fc@mail.acme.io:587/",
        "\\token = '{}'",
    ],
)
def test_a_value_ends_where_its_text_does(line):
    value = "".join(random.Random(line).choices(LETTERS, k=32))
    assert find_secret(f"\n{line.format(value)}\n") is not None
    assert find_secret(f"\n{line.format('x' * 32)}\n") is None


HEX, WIDE = "5b42b63e7a517f941463224a14d06429cbc4eedc1f0a7d9e3b8c6a52d4f7e910", "7kQmZ2x9Lw4TfVb1NcRs8yHgJdPa3UeX"
STORED = [
    f"password = 'pbkdf2_sha256$260000$hqUl3qQRpGMq${WIDE}='",
    f"password = 'sha1$zhuWMG${HEX[:40]}'",
    f"password: 'scrypt:32768:8:1$DbFNA8EpcOHyC2eD${HEX}'",
    f"password = 'SCRAM-SHA-256$4096:I92F6qP9drK1h90QiRwyyg==${WIDE}=:{WIDE}='",
    f"password = '$e0801${WIDE}=='",
    f"userPassword: {{SSHA}}{WIDE}",
    f"userPassword: {{SSHA}}{WIDE[:4]}/{WIDE[4:]}=",
    f'matches("password", "{{pbkdf2}}{HEX}")',
    f"PASSWORD 'md5{HEX[:32]}'",
    f"assert sha256('password') == '{HEX}'",
    f'assertThat(encoder.encode("password")).isEqualTo("{HEX}")',
]


@pytest.mark.parametrize("line", STORED)
def test_what_a_password_is_stored_as_is_no_secret(line):
    assert find_secret(f"x = 1\n{line}\n") is None


ROW = "1234567890abcdefghijklmnopqrstuvwxyz"
DEMO = base64.urlsafe_b64encode(b'{"iss":"supabase-demo","exp":1}').decode().rstrip("=")
NO_SECRETS = [
    *(f"token: ghp_{tail}" for tail in ("x" * 36, ROW)),
    f"https://hooks.slack.com/services/T00000000/B00000000/{'X' * 24}",
    f"sk-{'0123456789abcdef' * 2}",
    "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
    f'fetch("https://api.example.com/v1?page=2&api_key={WIDE}")',
    f"https://example.com/?token={WIDE}",
    f"https://example.org/v1?page=2&apiKey={WIDE}",
    "ip('192.168.1.1') // pass\nip('84d5:51a0:9114:1855:4cfa:f2d7:1f12:7003') // pass",
    "user=a&password=secret&_csrf=35942e65-a172-4cd4-a1d4-d16a51147b3e",
    "SESSION_SECRET=99ae8afbc17d...snip...ec0f262ac81b",
    'newSecretKey("PBKDF2WithHmacSHA256", password)',
    f"invalidToken = '{WIDE}'",
    "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
    "auth('имя', 'пароль', 'Basic 0LjQvNGPOtC/0LDRgNC+0LvRjA==')",
    "curl -u user:correct-password https://ci.acme.io",
    f'claims(TokenClaimNames.SUB, "{WIDE}")',
    '.header("Sec-WebSocket-Key", "6D69KGBOr4Re+Nj6zx9aQA==")',
    f"https://git.acme.io/a/commit/{HEX[:40]}#diff-{HEX[:32]}L36",
    f"CACHE_KEY = '{WIDE}'",
    f"next_page_token = '{WIDE}'",
    f"cached_password_hash = '{WIDE}'",
    f"invalid_password = '{WIDE}'",
    'SECRET_KEY = "09d25e094faa6ca2556c818166b7a9563b93f7099f6f0f4caa6cf63b88e8d3e7"',
    "SECRET_KEY = '192b9bdd22ab9ed4d12e236c78afcb9a393ec15f71bbf5dc987d54727823bcbf'",
    'export FLASK_SECRET_KEY="5f352379324c22463451387a0aec5d2f"',
    f"SECRET_ARN = 'arn:aws:secretsmanager:us-east-1:123456789012:secret:prod/db-{WIDE[:12]}'",
    f"!Sub 'arn:aws:secretsmanager:${{AWS::Region}}:${{AWS::AccountId}}:secret:{WIDE[:12]}'",
    f"password: ${{DB_PASSWORD}}\nhost: {WIDE}",
    f"SecretString: !Sub '{{{{resolve:secretsmanager:${{My{WIDE[:12]}}}:SecretString:password}}}}'",
    f"token: '${{{{ secrets.{WIDE[:20]} }}}}'",
    f"NREUM.info={{licenseKey:'NRJS-{HEX[:19]}'}}",
    f"peer public key: {WIDE}",
    f"NEXT_PUBLIC_API_KEY={WIDE}",
    f'<input name="authenticity_token" value="{WIDE}">',
    f'headers[.secWebSocketKey] = "{WIDE}"',
    f"AWS4-HMAC-SHA256 Credential=user/eu/es/aws4_request, SignedHeaders=host;x-amz-date, Signature={HEX}",
    f'keyid="key-of-test"\nSignature: sig1=:{WIDE}:',
    f'MagicCookieKey:   "PLUGIN_COOKIE",\nMagicCookieValue: "{HEX}"',
    "access_key: QUNDRVNTX0tFWQ0K",
    "password: S3cretP@ssw0rd!",
    "bearer_auth('someS3cr3tAutht0k3n')",
    f"tar -p -xf {WIDE[:20]}/x && git commit -a -C {HEX[:40]}",
    f"SERVICE_ROLE_KEY=eyJhbGciOiJIUzI1NiJ9.{DEMO}.{WIDE}",
    f"algolia: {{ appId: 'A1', apiKey: '{WIDE}', indexName: 'docs' }}",
    f"encrypted password: {WIDE}",
    f"desenhaLinha = '{WIDE}'",
    "key = utf8mb4base64encodedkey",
    "const tokensRegExp =\n  /[yYQqMLwIdDecihHKkms]o|(\\w)\\1*|''/g",
    f"mockToken = '{WIDE}'",
    f"'X-Sealed-Key': '{WIDE}'",
    f"'key' => 'en_GB.messages.{HEX[:40]}'",
    "'key' => 'color:#56DB3A'",
    f'"password": "",\n"host": "xn--{WIDE[:14].lower()}"',
    f"https://{HEX[:32]}@errors.acme.io/1",
    "http://user:pa%24%24word@acme.io",
    "http://user:pass@www.acme.io:80/dir1/dir2/x2y.html?p=8&x=d2h#an",
    f"minisign -Vqm a -P RW{WIDE}{HEX[:22]}",
    "access_token: 2YotnFZFEjr1zCsicMWpAA",
    "new_pass = sds_new_len(op+1,o1len-1);",
    f'{{"signature": {{"token": "{HEX[:50]}", "timestamp": "1661621710", "signature": "{HEX}"}}}}',
    "password: mysqlserversroot",
    "password: this that will hold",
]


@pytest.mark.parametrize("line", NO_SECRETS)
def test_a_placeholder_and_what_opens_nothing_are_no_secret(line):
    assert find_secret(f"x = 1\n{line}\n") is None


@pytest.mark.parametrize(
    "line",
    [
        f"token: ghp_{WIDE}abcd",
        f"https://hooks.slack.com/services/T00000000/B00000000/{WIDE[:24]}",
        f'fetch("https://api.acme.io/v1?page=2&api_key={WIDE}&of=example.com")',
        f"https://example.com/docs and then api_key={WIDE}",
        f"name_of_token = '{WIDE}'",
        f"CACHE_REDIS_PASSWORD = '{WIDE}'",
        f"certPassword: '{WIDE}'",
        f"WTF_CSRF_SECRET_KEY = '{WIDE}'",
        f"# openssl rand -hex 32\nSECRET_KEY = '{HEX}'",
        f"SECRET_KEY = 'django-insecure-{WIDE}'",
        f"curl -u deploy:{WIDE} https://ci.acme.io",
        f'["--user", "deploy:{WIDE}"]',
        f"Authorization: Basic {base64.b64encode(f'deploy:{WIDE}'.encode()).decode()}",
        f'"auth": "{base64.b64encode(f"deploy:{WIDE}".encode()).decode()}"',
        f"https://a.blob.core.windows.net/c?sv=2024&sig={WIDE}{HEX[:11]}%3D",
        f"whsec_{WIDE}",
        f"PAGE_ACCESS_TOKEN={WIDE}",
        f"CURSOR_API_KEY={WIDE}",
        f"HASH_SECRET={WIDE}",
        f"SIGNATURE_KEY={WIDE}",
        f"2fa_secret={WIDE}",
        f"keytool -storepass {WIDE}",
        f"requirepass {WIDE}",
        f'wifi_psk = "{WIDE}"',
        f"Passwort: {WIDE}",
        f"redis-cli -h cache.acme.io -a {WIDE[:20]} ping",
        f"docker login -u ci -p {WIDE[:20]} registry.acme.io",
        f'["docker", "login", "-p", "{WIDE[:20]}"]',
        f"7z x -p{WIDE[:20]} a.7z",
        f"smbclient //s/x -U deploy%{WIDE[:20]}",
        f"echo '{WIDE[:20]}' | docker login -u ci --password-stdin",
        f"htpasswd -b -c users deploy {WIDE[:20]}",
        f"password: ${{DB_PASSWORD}} # was {WIDE[:20]}",
        f"password: {{{{ vault_pw }}}}  # old: {WIDE[:20]}",
        f"name: DB_PASSWORD\n  value: {WIDE[:20]}",
        f"token: secret_{WIDE}",
        f"mysqldump -uroot -p{WIDE[:20]} shop",
        f"sshpass -p '{WIDE[:20]}' scp a b:",
        f"get(URL, auth=('svc', '{WIDE[:20]}'))",
        f'$pw = ConvertTo-SecureString "{WIDE[:20]}" -AsPlainText',
        f"password: ${{DB_PASSWORD:-{WIDE[:20]}}}",
        f'<Api config={{{{ apiKey: "{WIDE[:30]}" }}}} />',
        f'acme::config::db::password = "{WIDE}"',
        f'let key = acme::vault::Secret::new("{WIDE}");',
        f"user:app:x:password={WIDE}",
        f"ghs_1234567_{WIDE}abcdABCD.{WIDE}",
        f"glrt-{WIDE[:20]}",
        f"sntrys_{WIDE}{HEX[:12]}_{WIDE}",
        "password: aighIceeh6owei8aiMoh",
        "password: VqrBBqfNXyracyMP",
        f"ALTER ROLE app WITH ENCRYPTED PASSWORD '{WIDE[:20]}';",
        f"RUN echo 'root:{WIDE[:20]}' | chpasswd",
        f"| user | password |\n| :--- | --- |\n| app | {WIDE[:20]} |",
        f"senhaDoBanco = '{WIDE[:20]}'",
        f"пароль: {WIDE[:20]}",
        f"密码\uff1a{WIDE[:20]}",
        f"algolia: {{ appId: 'A1', adminApiKey: '{WIDE}' }}",
        f"algolia: {{ appId: 'A1' }}, other: {{ apiKey: '{WIDE}', indexName: 'x' }}",
        f"password: {base64.b64encode(b'Xk9mQ!p2Rv#9TkL4wZ8').decode()}",
        f"postgresql://app:{HEX[:32]}@db.acme.io:5432/app",
        "[database]\npasswd = tE9Y@b^uT2vtw",
        "password = 'aK$9{mQ|p2<Rv9~Tk'",
        "define('AUTH_KEY', '|V8:KzVU!00YB#2IJ(!Kl1wHhMkmbEj1@GA,TIk9>=R)xXm6AP?YD^knRIZcaz');",
        "DbPassword:\n  ParameterValue: aK79mQp2Rv9Tk",
        "EMAIL_PASSWORD = 'qmxh fgtz blxz rrvd'",
        "server.login('noreply@acme.io', 'qmxhfgtzblxzrrvd')",
        f"%0A%09{AWS}%0D",
        f"&#9;{AWS}",
        f"\\u000a{AWS}",
        f"\\x09{AWS}",
        f"\\012{AWS}",
    ],
)
def test_what_is_like_a_placeholder_is_a_secret(line):
    assert find_secret(f"x = 1\n{line}\n") is not None


OWN = f"app.key = 'base64:{WIDE}='\n"


@pytest.mark.parametrize(
    ("path", "text", "is_secret"),
    [
        ("tests/Integration/EncryptionTest.php", OWN, False),
        ("phpunit.xml.dist", f'<env name="API_KEY" value="{WIDE}"/>\n', True),
        ("phpunit.xml.dist", f'<env name="APP_KEY" value="{WIDE}"/>\n', False),
        ("spec/session_spec.rb", f"# See https://docs.acme.io/keys\nget('http://localhost:3000')\n{OWN}", False),
        ("config/app.php", OWN, True),
        ("tests/live_test.py", f"URL = 'https://api.acme.io'\n{OWN}", True),
        ("tests/live_test.py", f"api_key = '{WIDE}'\n", True),
        ("tests/live_test.py", TOKEN, True),
    ],
)
def test_a_key_that_a_test_makes_is_no_secret_unless_another_issues_it_or_the_test_names_a_host(path, text, is_secret):
    assert (find_secret(text, path=path) is not None) == is_secret
    assert (explain_secret(path, [text], str) is not None) == is_secret


@pytest.mark.parametrize("kind", ["PGP PUBLIC KEY BLOCK", "PUBLIC KEY", "CERTIFICATE"])
def test_a_file_of_public_keys_alone_is_no_secret_by_its_name(kind):
    block = f"-----BEGIN {kind}-----\nComment: a\n\n{WIDE}\n={HEX[:4]}\n-----END {kind}-----\n"
    login = block.replace("=", "user: password\n=")
    for text, is_secret in ((block * 2, False), (block + "password\n", True), (block + login, True), ("", True)):
        assert (explain_secret("apt/a.gpg.key", [text], str) is not None) == is_secret


@pytest.mark.parametrize(
    "line",
    [
        "password = 'Xk$9mQp2Rv9TkL4wZ8'",
        f"password: '{{noop}}{WIDE}'",
        f"password = '{HEX}'",
        f"login('password', '{WIDE}')",
    ],
)
def test_a_password_that_is_like_a_stored_one_is_a_secret(line):
    assert find_secret(f"x = 1\n{line}\n") is not None


def test_no_word_of_our_own_source_code_looks_random():
    words = {word for path in Path(code_commit.__file__).parent.rglob("*.py") for word in path.read_text().split()}
    assert [word for word in words if re.fullmatch(r"[\w.-]+", word) and looks_random(word)] == []


def test_a_value_that_the_llm_wrote_makes_no_file_a_secret():
    line = "password = 'X7mQp2Rv9TkL4wZ8'\n"
    assert explain_secret("a.py", [line], str) == "a secret, judging by its content (a value of password in line 1)"
    assert explain_secret("a.py", [line], lambda: f"--- a.py ---\n{line}") is None


@pytest.mark.parametrize(
    "piece",
    [
        "key=",
        "key ",
        "a_key: 'x",
        "pass: ",
        "pass: abcd efgh ijkl mnop",
        "://a:",
        "token eyJh.eyJh.",
        "_" + "a" * 31,
        "İkey",
        "\\",
        "\\n",
        "&amp;",
        "%25",
    ],
)
def test_the_time_is_linear_in_the_size(piece):
    assert is_linear(lambda size: explain_secret("a.py", [piece * (size // len(piece))], str), 4_000)
