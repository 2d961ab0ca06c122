"""`rollup`: which files it holds and how, what it leaves out and says of it, and that nothing can harm or stop it."""

import base64
import json
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import time
import tracemalloc
from pathlib import Path

import pytest
from command import CODE_COMMIT, Run, git

import code_commit
from code_commit.codebase.make import write_codebase
from code_commit.codebase.select import CodebaseRequest, Selection, read_files
from code_commit.errors import NotSetUpError
from code_commit.paths.secrets import explain_secret
from code_commit.project import find_project
from code_commit.redaction import Redactor

KEY = "AIza" + "SyQ7x9-Lk_mNoPqRsTuVwXyZ0123456ab"
ROLLUP = "agent-config/codeRollup.txt"
END = b"--- FILES THAT ARE NOT SHOWN ---"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / ".gitignore").write_text("/agent-config\n*.log\nhidden/\n")
    git(folder, "add", "-A")
    return folder


def lay(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def names(folder: Path) -> list[str]:
    lines = (folder / ROLLUP).read_bytes().split(b"\n")
    return [
        line[4:-4].decode() for line in lines if line.startswith(b"--- ") and line.endswith(b" ---") and line != END
    ]


def rolled_up(run: Run, folder: Path, *arguments: str, **options) -> dict:
    done = run(folder, "rollup", "--json", *arguments, **options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def reasons(result: dict) -> dict[str, str]:
    return {file["path"]: file["reason"] for file in result["left_out"]}


def test_the_rollup_byte_for_byte(root: Path, run_code_commit: Run):
    files = {
        "b.txt": "two\n",
        "a/z.txt": "no line end",
        "a.txt": "",
        "a/b/c.txt": "\ufeffBOM\r\nCRLF\r\n",
        "é x.txt": "\n\n",
        "tabs.txt": "\t\x0b\x0c\x1b[31m\u2028\n",
    }
    lay(root, files)
    git(root, "add", "a.txt", "b.txt", ".gitignore")
    done = run_code_commit(root, "rollup")
    assert (done.returncode, done.stdout) == (0, "")
    assert (root / ROLLUP).read_bytes() == (
        b"--- .gitignore ---\n/agent-config\n*.log\nhidden/\n\n"
        b"--- a.txt ---\n\n"
        b"--- a/b/c.txt ---\n\xef\xbb\xbfBOM\r\nCRLF\r\n\n"
        b"--- a/z.txt ---\nno line end\n\n"
        b"--- b.txt ---\ntwo\n\n"
        b"--- tabs.txt ---\n\t\x0b\x0c\x1b[31m\xe2\x80\xa8\n\n"
        b"--- \xc3\xa9 x.txt ---\n\n\n\n"
    )
    assert stat.S_IMODE((root / ROLLUP).stat().st_mode) == 0o600
    assert stat.S_IMODE((root / "agent-config").stat().st_mode) == 0o700
    assert [path.name for path in (root / "agent-config").iterdir()] == ["codeRollup.txt"]
    size = (root / ROLLUP).stat().st_size
    assert f"{ROLLUP}: 7 files, {size:,} bytes, about " in done.stderr


@pytest.mark.parametrize("repository", ["git", "no repository"])
def test_ignored_files_stay_out(repository, root: Path, run_code_commit: Run):
    lay(root, {"x.log": "no", "keep.txt": "yes", "hidden/x": "no", "sub/.gitignore": "*.tmp\n!important.log\n"})
    lay(root, {"sub/a.tmp": "no", "sub/important.log": "yes", "sub/deep/a.log": "no", "nested/.git/config": "no"})
    lay(root, {"nested/inside.txt": "another repository's", "agent-config/query.txt": "no", "sub/deep/ok": "yes"})
    if repository == "git":
        git(root, "add", "-f", "hidden/x")
        git(root / "nested", "init", "-q")
    else:
        shutil.rmtree(root / ".git")
        git(root / "nested", "init", "-q")
    result = rolled_up(run_code_commit, root)
    expected = [".gitignore", "keep.txt", "sub/.gitignore", "sub/deep/ok", "sub/important.log"]
    assert names(root) == sorted([*expected, "hidden/x"] if repository == "git" else expected)
    assert reasons(result) == {"nested/": "submodule or other repository"}
    warned = "warning: not a git repository" in run_code_commit(root, "rollup").stderr
    assert warned == (repository != "git")


def test_a_rollup_that_makes_agent_config_says_what_git_does_not_ignore_yet(root: Path, run_code_commit: Run):
    lay(root, {"a.txt": "a\n"})
    assert "warning" not in run_code_commit(root, "rollup").stderr
    shutil.rmtree(root / "agent-config")
    (root / ".gitignore").unlink()
    assert "warning: .gitignore is missing" in run_code_commit(root, "rollup").stderr
    assert "warning" not in run_code_commit(root, "rollup").stderr


def test_files_that_have_no_place_in_a_rollup(root: Path, run_code_commit: Run):
    other = root.parent / "other"
    other.mkdir()
    git(other, "init", "-q")
    git(other, "commit", "-q", "--allow-empty", "-m", "x")
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "module")
    lay(root, {"bin": b"text\0", "latin.txt": b"caf\xe9\n", "cut.txt": b"x\xe2\x82", "utf16.txt": "x".encode("utf-16")})
    lay(root, {"Cargo.lock": "x", "sub/conan-lock.json": "x", "gone.txt": "x", "openai-key.txt": "sk-other"})
    lay(root, {"id": "-----BEGIN OPENSSH PRIVATE KEY-----\nx\n", "id.pub": "ssh-ed25519 x\n"})
    lay(root, {"was_folder/f": "secret", "was_file": "x"})
    lay(root.parent, {"elsewhere/f": "from elsewhere"})
    (root / "link").symlink_to("bin")
    (root / "outward").symlink_to("../elsewhere")
    git(root, "add", "-A")
    (root / "gone.txt").unlink()
    shutil.rmtree(root / "was_folder")
    (root / "was_folder").symlink_to("../elsewhere")
    (root / "was_file").unlink()
    os.mkfifo(root / "was_file")
    result = rolled_up(run_code_commit, root)
    assert names(root) == [".gitignore", ".gitmodules", "id.pub"]
    assert reasons(result) == {
        "bin": "binary",
        "latin.txt": "not UTF-8",
        "cut.txt": "not UTF-8",
        "utf16.txt": "UTF-16, not UTF-8",
        "Cargo.lock": "lock file",
        "sub/conan-lock.json": "lock file",
        "gone.txt": "deleted",
        "openai-key.txt": "key file",
        "id": "looks like a secret",
        "link": "link",
        "outward": "link",
        "was_folder": "link",
        "was_folder/f": "link",
        "was_file": "no regular file",
        "module": "submodule or other repository",
    }
    assert "from elsewhere" not in (root / ROLLUP).read_text()


def test_files_outside_of_a_sparse_checkout_are_named_as_that(root: Path, run_code_commit: Run):
    lay(root, {"in/a.txt": "x", "out/b.txt": "x", "out/gone.txt": "x"})
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "x")
    git(root, "sparse-checkout", "set", "in")
    (root / "in/a.txt").unlink()
    assert reasons(rolled_up(run_code_commit, root)) == {
        "in/a.txt": "deleted",
        "out/b.txt": "not checked out",
        "out/gone.txt": "not checked out",
    }
    shown = (root / ROLLUP).read_text()
    assert ("not checked out: out/b.txt, out/gone.txt\n" in shown, "deleted" in shown) == (True, False)


def test_a_folder_that_is_swapped_for_a_link_meanwhile_is_not_followed(root: Path):
    lay(root, {"a.txt": "x", "folder/sub/f": "x"})
    lay(root.parent, {"elsewhere/sub/f": "from elsewhere"})
    selection = Selection()
    files = read_files(root, ["a.txt", "folder/sub/f"], Redactor([]), selection)
    assert next(files).name == "a.txt"
    (root / "folder").rename(root / "old")
    (root / "folder").symlink_to("../elsewhere")
    assert list(files) == []
    assert selection.left_out == {"link": {"folder/sub/f": "behind a link"}}


BASE64 = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ"
RANDOM = "x7Q9mZ2kL5nP8rT1vW4yB6cD3fG0hJaS"
OTHER = RANDOM[::-1]
SECRET_NAMES = """
    prod.env deploy/production.env env server.pem.bak old/site.key.old AuthKey.p8 login.ppk x.kdb x.kdbx deploy_rsa
    id_github.bak id_rsa.bak .my.cnf .pgpass .docker/config.json terraform.tfvars prod.tfvars.json x.tfstate.backup
    config/secrets.yml secrets.json credentials gcp-credentials.json config/credentials.yml.enc kubeconfig
    .kube/config .aws/credentials .vault-token .s3cfg .boto auth.json application_default_credentials.json
    .bash_history home/.python_history .gem/credentials .cargo/credentials.toml backup.age example.com.key ca.key ca-key.pem cert-key.pem
"""
OTHER_NAMES = """
    env.ts credentials.go docs/credentials.md src/secrets.rs locales/en/auth.json i18n/de/secrets.json example.env
    chart/templates/secrets.yaml secrets.example.yml terraform.tfvars.example cacert.pem public.key fullchain1.pem cert_512.pem
    .env.d/x.sh src/undo_history history.md config.json deploy/values.yaml crypt/plain.txt
"""


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


SECRETS = {
    ".env": "DATABASE=x\n",
    "deploy/.env.local": "",
    "server.pem": "",
    "tls/site.KEY": "",
    ".netrc": "",
    "tls/long.key": f"-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----\n{' ' * 8000}\npassword: a\n",
    "home/id_ed25519": "",
    ".pypirc": "",
    ".git-credentials": "",
    ".npmrc": f"//registry.example.org/:_authToken={RANDOM}\n",
    "service.json": f'{{"private_key": "-----BEGIN PRIVATE KEY-----\\n{BASE64}\\n"}}\n',
    "notes.md": f"> -----BEGIN RSA PRIVATE KEY-----\n> {BASE64}\n",
    "old.txt": f"x\n-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES,0\n\n{BASE64}\n",
    "aws.ini": "id = AK" + "IAQ7X2MNPRSTUVWXYZ\n",
    "a.py": f"client = OpenAI('sk-proj-{RANDOM}{RANDOM}')\n",
    "b.py": f"key='sk-ant-api03-{RANDOM}{RANDOM}'\n",
    "ci.sh": f"GITHUB_TOKEN=gh{''}p_{RANDOM}abcd\n",
    "temporary.ini": "id = AS" + "IAQ7X2MNPRSTUVWXYZ\n",
    "behind-what-is-a-letter-to-rust-alone.md": "\U0001f511\ufe0fAK" + "IAQ7X2MNPRSTUVWXYZ\n",
    "behind-a-space-to-python-alone.txt": f"-----BEGIN PRIVATE KEY-----\nProc-Type: 4\n\x1c\n{BASE64}\n",
    "backup.txt": f"AGE-SECRET-KEY-1{'Q' * 58}\n",
    ".yarnrc.yml": f"nodeLinker: node-modules\nnpmAuthToken: {RANDOM}\n",
    "values.yaml": "password: ENC[x]\nsops:\n    age: []\n    mac: ENC[AES256_GCM,data:x,iv:y,tag:z,type:str]\n",
    "values.json": '{"sops": {"mac": "ENC[AES256_GCM,data:x,iv:y,tag:z,type:str]"}}\n',
    **dict.fromkeys(SECRET_NAMES.split(), ""),
    "web/.npmrc": "registry=https://registry.example.org/\n//registry.example.org/:_password=aHVudGVyMg==\n",
    "old/.npmrc": 'username=me\n//registry.example.org/npm/:_password = "aHVudGVyMg=="\n',
    "older/.npmrc": "username=me\n_password=aHVudGVyMg==\n",
    "deploy.sh": f"export AWS_SECRET_ACCESS_KEY='{RANDOM}/+aB4567'\n",
    "aws-config": f"aws_secret_access_key = {RANDOM}/+aB4567\n",
    "session.json": f'{{"SecretAccessKey": "{RANDOM}/+aB4567", "Expiration": "2026-01-01"}}\n',
    "session.ini": f"aws_session_token={RANDOM * 4}\n",
    "s3.js": f"new S3({{ secretAccessKey: '{RANDOM}/+aB4567' }})\n",
    "sts.rb": f'session = Session(aws_session_token="{RANDOM * 4}")\n',
    "pay.rb": f"Stripe.api_key = 'sk_{''}live_{RANDOM}'\n",
    "Joined.java": f'String KEY = "-----BEGIN PRIVATE KEY-----\\n" +\n    "{BASE64}\\n" +\n    "{BASE64}";\n',
    "list.rb": f'KEY = [\n    "-----BEGIN EC PRIVATE KEY-----",\n    "{BASE64}",\n]\n',
    "tls.yaml": f"tls.key: {encoded(f'-----BEGIN PRIVATE KEY-----{chr(10)}{BASE64}')}\n",
    "rsa.yaml": f"x: {encoded(f'-----BEGIN RSA PRIVATE KEY-----{chr(10)}{BASE64}')}\n",
    "der.ts": f"export const it = 'MIIEvQIBADANBgkqhkiG9w0BAQ{BASE64}'\n",
    "curve.ts": f"export const it = 'MHcCAQEE{BASE64}'\n",
    "putty.txt": f"PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 1\n{BASE64}\nPrivate-MAC: 00\n",
    "ssh2.txt": f'---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nComment: "x"\n{BASE64}\n',
    "jwk.js": f"it = {{ kty: 'EC', x: 'a', d: '{RANDOM}' }}\n",
    "settings.rb": f'API_KEY = os.environ.get("API_KEY", "{RANDOM}")\n',
    "values.tf": f'variable "db_password" {{\n  default = "{RANDOM}"\n}}\n',
    "env.yaml": f"env:\n  - name: APP_TOKEN\n    value: {RANDOM}\n",
    "login.xml": f"<password>{RANDOM}</password>\n",
    "Dockerfile": f"ENV DB_PASS {RANDOM}\n",
    "call.sh": f"curl -H 'Authorization: Bearer {RANDOM}' $URL\n",
    "user.sql": f"CREATE USER app IDENTIFIED BY '{RANDOM}';\n",
    "rails.yml": f"secret_key_base: {'3f9a0c5e71d2b846' * 4}\n",
    "signs.yml": 'password: "kF9#xQ2(vL8p&zT4"\n',
    "encoded.yml": f"password: {encoded('X7mQp2Rv9TkL4wZ8')}\n",
    "database.txt": "postgresql://app:X7mQp2Rv9TkL4wZ8@db.internal:5432/x\n",
    "clone.sh": f"git clone https://{RANDOM}@github.com/x/y.git\n",
    "prefix.js": f"call('abc_{RANDOM}')\n",
}
NO_SECRETS = {
    ".env.example": "KEY=\n",
    ".env.production.sample": "",
    ".npmrc.txt": "//registry.example.org/:_authToken=${NPM_TOKEN}\n",
    "id_rsa.pub": "ssh-rsa AAAA\n",
    "id_generator.py": "def id(): ...\n",
    "locales/id_ID": "",
    "monkey.py": "if text.startswith('-----BEGIN PRIVATE KEY-----'):\n    raise ValueError('a private key of no use')\n",
    "page.css": ".sk-estimator-doc-link-and-more-words-to-come:hover { }\n",
    "doc.md": "AK" + "IAIOSFODNN7EXAMPLE\n",
    "env.d.ts": "",
    "npm/.npmrc.txt": "//registry.example.org/:_password=${NPM_PASSWORD}\n",
    "login.rb": "_password = read_password()\n_password_of = {}\n",
    "aws.md": "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\naws_session_token = ${TOKEN}\n",
    "aws.ts": "const secretAccessKey: string = process.env.AWS_SECRET_ACCESS_KEY ?? ''\n",
    ".yarnrc.yml.txt": "npmAuthToken: ${NPM_TOKEN}\n",
    **dict.fromkeys(OTHER_NAMES.split(), ""),
    "public.ts": f"export const PUBLIC_KEY = `-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A{OTHER}\n-----END PUBLIC KEY-----`\n",
    "public-der.ts": f"const key = 'MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A{BASE64}'\n",
    "deploy-key.ts": f"const deployKey = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{OTHER}'\n",
    "scan.go": 'var heads = []string{"-----BEGIN PRIVATE KEY-----", "PuTTY-User-Key-File-3", "Private-Lines: "}\n',
    "jwk-public.json": f'{{"kty": "EC", "kid": "{OTHER}", "x": "{OTHER}"}}\n',
    "hashes.txt": f"tokenize-rt==6.1.0 \\\n    --hash=sha256:{'3f9a0c5e71d2b846' * 4}\n",
    "record.csv": f"app/token.py,sha256={OTHER},81\n",
    "hooks.yaml": f"- repo: detect-secrets\n  rev: {'3f9a0c5e71' * 4}\n",
    "cache.rb": "key = 'ae05086432ca935f6eba409a8ecd4896'\nsplit_key('add-8f6e709446674bad78ea8aeecfee188e')\n",
    "ci.yml": f"api_key:\n  secure: {OTHER}\nNPM_TOKEN: ${{{{ secrets.NPM_TOKEN }}}}\n",
    "uuid.sql": "INSERT INTO token_kinds VALUES ('3f9a0c5e-71d2-4846-b3f9-a0c5e71d2b84');\n",
    "coin.js": "const USDC_TOKEN = '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48'\n",
    "rows.c": "key = '000102030405060708090a0b0c0d0e0f'; password = 'abcdefghijklmnopqrstuvwxyz0123456789'\n",
    "words.json": '{"password": "Zugangsschluessel2024wurdeErneuert", "token": "bert-large-uncased-v2"}\n',
    "basic.js": f"const credential = '{encoded('alice:password-of-alice')}'\n",
    "jwt.js": f"token = '{encoded('{}')[:-1]}.{encoded(json.dumps({'sub': 12345}))[:-1]}.{OTHER}'\n",
    "urls.rb": 'URL = "postgresql://app:X7mQp2Rv9TkL4wZ8@localhost/x"; B = f"redis://:{password}@{host}/0"\n',
    "search.ts": "const next_token = 'AMEw9yO5jnsGnZJLHSKDFHJJu'; csrf_token = 'X7mQp2Rv9TkL4wZ8'\n",
}


def test_a_likely_secret_stays_out_and_is_named_unless_included(root: Path, run_code_commit: Run):
    lay(root, SECRETS | NO_SECRETS)
    result = rolled_up(run_code_commit, root)
    assert names(root) == sorted([".gitignore", *NO_SECRETS])
    assert reasons(result) == dict.fromkeys(SECRETS, "looks like a secret")
    assert RANDOM not in (root / ROLLUP).read_text() + json.dumps(result)
    done = run_code_commit(root, "rollup", "--include", "*.py", "--include", ".env", "a.py", "server.pem")
    assert names(root) == [".env", "a.py", "b.py", "id_generator.py", "monkey.py"]
    assert "warning: left out (looks like a secret): server.pem; --include includes it" in done.stderr
    done = run_code_commit(root, "rollup", "--include", "*.pem", "--include", ":!server.pem", "a.py")
    assert (done.returncode, "server.pem" in names(root)) == (0, False), done.stderr
    done = run_code_commit(root, "rollup", "--include", ".env", "--include", "no-such-file")
    assert (done.returncode, "--include no-such-file" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    "name", [name for name, content in SECRETS.items() if content and name not in (".env", "tls/long.key")]
)
def test_what_stays_out_by_its_content_may_not_be_changed_either(name: str):
    assert explain_secret("plain.txt", [SECRETS[name]], str), "the same rule for both"


def test_an_excluding_pattern_that_matches_no_file_is_told_where_a_path_resembles_it(root: Path, run_code_commit: Run):
    lay(root, {"docs/a.md": "x", "src/a.py": "x"})
    done = rolled_up(run_code_commit, root, "--exclude", "doc/", "--exclude", "*.svg")
    assert done["warnings"] == ["doc/ excludes no file; did you mean 'docs/'?"]
    assert rolled_up(run_code_commit, root, "src", "--exclude", "doc/")["warnings"] == []
    (warning,) = rolled_up(run_code_commit, root, "--exclude", f"{root.resolve()}/docs/")["warnings"]
    assert warning.startswith("exclude: ")
    assert warning.endswith("can match nothing: it is an absolute path: write /docs/")


def test_what_gitattributes_has_encrypted_stays_out(root: Path, run_code_commit: Run):
    lay(root, {"a.txt": "x", "b.txt": "x", "c.txt": "x", "d.txt": "x", "e.txt": "x"})
    attributes = "a.txt filter=git-crypt\nb.txt filter=git-crypt-team\nc.txt filter=crypt\nd.txt filter=sops\n"
    lay(root, {".gitattributes": f"{attributes}e.txt filter=lfs\n"})
    result = rolled_up(run_code_commit, root, ".", "a.txt")
    assert names(root) == [".gitattributes", ".gitignore", "e.txt"]
    assert reasons(result) == dict.fromkeys(("a.txt", "b.txt", "c.txt", "d.txt"), "looks like a secret")
    rolled_up(run_code_commit, root, "--include", "a.txt")
    assert names(root) == [".gitattributes", ".gitignore", "a.txt", "e.txt"]


GENERATED = {
    "go.go": "// Code generated by protoc-gen-go. DO NOT EDIT.\npackage x\n",
    "js.js": "/**\n * @generated by a tool\n */\nlet x\n",
    "two.py": "# This file was generated by make.\n# Please do not modify it.\nx = 1\n",
    "first.sql": "-- DO NOT EDIT: this is automatically generated\nselect 1\n",
    "api.ts": "/**\n * This file was auto-generated by a tool.\n * Do not make direct changes to the file.\n */\n",
    "form.cs": "// This code was generated by a tool.\n//\n// Changes will be lost if it is regenerated.\n",
    "after.sh": "cat <<END\nx\nEND\n# This file is generated, do not edit it.\n",
    "short.cs": "// <auto-generated/>\nclass X {}\n",
    "src/own.c": "/* src/own.c: generated by lemon from own.y. Do not edit. */\n",
    "from.c": "/* Generated from the files in grammar/. Do not edit this. */\n",
    "never.f90": "! This file is autogenerated and should not be edited.\n",
}
WRITTEN = {
    "Makefile": "# The files in gen/ are generated by protoc: do not edit them.\n",
    "tables.py": "# Writes src/tables.rs, which is generated and must not be edited.\n",
    "help.md": "<!-- never edit generated files -->\n",
    "gen.py": "# The files in gen/ are generated by this script, do not edit them.\n",
    "docs.md": "How files are generated. Do not edit them.\n",
    "tool.py": f"x = 1\n{'y = 2' * 300}\n# generated, do not edit\n",
    "lock.txt": "# This file is autogenerated by pip-compile\nx==1\n",
    "build.js": "const banner = `/**\n * DO NOT EDIT\n * This is generated from src/\n */\n`;\n",
    "make.py": 'write(\n    """\n# This file is generated, do not edit it.\n"""\n)\n',
    "make.sh": "cat > a.h <<'END'\n// This file is generated, do not edit it.\nEND\n",
    "head.py": "# Writes generated files\nHEAD = '# Do not edit'\n",
}


def test_what_its_own_header_calls_generated_stays_out_unless_named(root: Path, run_code_commit: Run):
    lay(root, GENERATED | WRITTEN)
    result = rolled_up(run_code_commit, root)
    assert (names(root), reasons(result)) == (
        [".gitignore", *sorted(WRITTEN)],
        dict.fromkeys(GENERATED, "vendored or generated"),
    )
    rolled_up(run_code_commit, root, "go.go", ".")
    assert "go.go" in names(root)


def test_a_pointer_to_a_file_elsewhere_stays_out_and_is_named(root: Path, run_code_commit: Run):
    lay(root, {"a.csv": "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"})
    lay(root, {"b.csv": "/annex/objects/MD5E-s115--0ccac146d107ecea40039e0fb1e1806c.csv\n"})
    assert reasons(rolled_up(run_code_commit, root)) == {"a.csv": "pointer of Git LFS", "b.csv": "pointer of git-annex"}


def test_a_file_in_conflict_is_named(root: Path, run_code_commit: Run):
    lay(root, {"a.txt": "one\n"})
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    git(root, "checkout", "-qb", "other")
    lay(root, {"a.txt": "two\n"})
    git(root, "commit", "-qam", "two")
    git(root, "checkout", "-q", "-")
    lay(root, {"a.txt": "three\n"})
    git(root, "commit", "-qam", "three")
    subprocess.run(["git", "merge", "other"], cwd=root, capture_output=True, check=False)
    assert rolled_up(run_code_commit, root)["warnings"] == ["a.txt is not merged: resolve its conflict first"]


def test_a_secret_is_told_with_its_line(root: Path, run_code_commit: Run):
    lay(root, {"a.py": f"\n\nkey = 'sk-{RANDOM}'\n", "b.py": f"{'x = 1' * 9000}\nkey = 'sk-{RANDOM}'\n"})
    told = run_code_commit(root, "rollup").stderr
    assert "a.py (an API key in line 3), b.py (an API key in line 2)" in told


def test_files_that_git_does_not_track_are_named(root: Path, run_code_commit: Run):
    lay(root, {"a.txt": "x", "b.txt": "x"})
    git(root, "add", "a.txt")
    assert "git does not track 1 of them: b.txt\n" in run_code_commit(root, "rollup").stderr
    assert rolled_up(run_code_commit, root)["untracked"] == ["b.txt"]
    git(root, "add", "b.txt")
    assert "not track" not in run_code_commit(root, "rollup").stderr


SPELLINGS = {
    "plain": KEY,
    "base64": base64.b64encode(b"ab" + KEY.encode()).decode(),
    "hex": KEY.encode().hex(),
    "URL": "".join(f"%{code:02X}" for code in KEY.encode()),
    "at the end of a large file": "x = 1\n" * 40_000 + KEY,
}


@pytest.mark.parametrize("text", SPELLINGS.values(), ids=SPELLINGS.keys())
def test_a_file_that_holds_a_key_stays_out_and_is_named(text, root: Path, run_code_commit: Run):
    lay(root, {"a.txt": "before\n", "src/holds.py": f"key = '{text}'\n", "z.txt": "behind\n"})
    lay(root, {"agent-config/gemini-key.txt": KEY + "\n"})
    (root / "agent-config/gemini-key.txt").chmod(0o600)
    (root / "agent-config").chmod(0o700)
    done = run_code_commit(root, "rollup")
    assert done.returncode == 0
    assert names(root) == [".gitignore", "a.txt", "z.txt"]
    assert (
        (root / ROLLUP)
        .read_bytes()
        .endswith(
            b"--- a.txt ---\nbefore\n\n--- z.txt ---\nbehind\n\n" + END + b"\ncontains an API key: src/holds.py\n\n"
        )
    )
    assert "warning: left out (contains an API key): src/holds.py" in done.stderr
    assert KEY not in done.stderr


def test_a_key_in_a_name_is_not_repeated(root: Path, run_code_commit: Run):
    lay(root, {f"src/{KEY}.txt": "x", "a.txt": "x"})
    done = run_code_commit(root, "rollup", "--verbose", "--json", env={"GEMINI_API_KEY": KEY})
    assert done.returncode == 0
    assert names(root) == [".gitignore", "a.txt"]
    assert KEY not in done.stderr + done.stdout + (root / ROLLUP).read_text()
    assert f"{'*' * (len(KEY) - 2)}ab" in done.stdout


def test_a_path_that_is_not_there_is_named_beside_one_that_is(root: Path, run_code_commit: Run):
    lay(root, {"src/a.py": "a\n"})
    done = rolled_up(run_code_commit, root, "src", "nosuch", "*.rs", ":!docs")
    assert done["warnings"] == ["there is no nosuch here, so it is not in the codebase"]
    assert done["files"] == 1


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["src"], ["src/a.py", "src/b.js", "src/gen/c.py"]),
        (["*.py"], ["d.py", "src/a.py", "src/gen/c.py"]),
        (["src/*.py", "d.py"], ["d.py", "src/a.py", "src/gen/c.py"]),
        (["./src/a.py"], ["src/a.py"]),
        (["."], [".gitignore", "d.py", "src/a.py", "src/b.js", "src/gen/c.py"]),
        ([":!src"], [".gitignore", "d.py"]),
        (["--exclude", "gen/", "--exclude", "*.js"], [".gitignore", "d.py", "src/a.py"]),
        (["--exclude", "*.py", "--exclude", "!d.py", "src", "d.py"], ["d.py", "src/b.js"]),
        (["--exclude", "/a.py"], [".gitignore", "d.py", "src/a.py", "src/b.js", "src/gen/c.py"]),
    ],
)
def test_pathspecs_and_patterns_narrow_it(arguments, expected, root: Path, run_code_commit: Run):
    lay(root, {"src/a.py": "", "src/b.js": "", "src/gen/c.py": "", "d.py": ""})
    git(root, "add", "src/a.py", "d.py")
    rolled_up(run_code_commit, root, *arguments)
    assert names(root) == expected


def test_a_rollup_of_nothing_is_refused_and_the_old_one_stays(root: Path, run_code_commit: Run):
    lay(root, {"bin": b"\0"})
    rolled_up(run_code_commit, root)
    before = (root / ROLLUP).read_bytes()
    for arguments in (["not-there"], ["bin"], ["../outside"], [":(nonsense)x"], ["--exclude", "*"]):
        done = run_code_commit(root, "rollup", *arguments)
        assert done.returncode == 2, arguments
        assert done.stderr.startswith("code-commit: "), done.stderr
        assert (root / ROLLUP).read_bytes() == before
        assert [path.name for path in (root / "agent-config").iterdir()] == ["codeRollup.txt"]
    assert "binary 1" in run_code_commit(root, "rollup", "bin").stderr


def test_a_folder_of_a_larger_repository_is_rolled_up_alone(root: Path, run_code_commit: Run):
    lay(root, {"part/a": "x", "part/.gitignore": "agent-config\nb\n", "part/b": "x", "beside": "x", "part/c.log": "x"})
    result = rolled_up(run_code_commit, root / "part", ":/", ".")
    assert names(root / "part") == [".gitignore", "a"]
    assert reasons(result)["../beside"] == "outside of this folder"


def test_names_that_could_forge_a_line_or_a_terminal_stay_out(root: Path, run_code_commit: Run):
    odd = [b"a\n--- b ---", b"\x1b[2J", b"latin-\xe9", "right\u202eleft".encode(), b"tab\t"]
    for name in odd:
        (Path(os.fsdecode(os.fsencode(root) + b"/" + name))).write_text("x")
    lay(root, {"ok ": "x", "-rf": "x", "日本語": "x", "*": "x"})
    done = run_code_commit(root, "rollup", "--verbose")
    assert done.returncode == 0
    assert names(root) == ["*", "-rf", ".gitignore", "ok ", "日本語"]
    assert "\x1b" not in done.stderr
    assert done.stderr.count("left out (unprintable name): ") == 5
    assert rolled_up(run_code_commit, root)["files"] == 5


def test_what_cannot_be_read_is_named(root: Path, run_code_commit: Run):
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    lay(root, {"locked": "x", "folder/f": "x", "a": "x"})
    git(root, "add", "locked", "folder")
    (root / "locked").chmod(0)
    (root / "folder").chmod(0)
    try:
        done = run_code_commit(root, "rollup")
    finally:
        (root / "folder").chmod(0o700)
    assert done.returncode == 0
    assert "(unreadable): folder/f (Permission denied), locked (Permission denied)" in done.stderr


def test_a_full_disk_leaves_the_old_rollup(root: Path, run_code_commit: Run):
    lay(root, {"a": "x" * 100})
    rolled_up(run_code_commit, root)
    before = (root / ROLLUP).read_bytes()
    lay(root, {f"b{number}": "y" * 250_000 for number in range(12)})
    done = subprocess.run(
        [*CODE_COMMIT, "rollup"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000)),
    )
    assert done.returncode == 5
    assert "cannot be written, and is as it was: File too large" in done.stderr
    assert (root / ROLLUP).read_bytes() == before
    assert [path.name for path in (root / "agent-config").iterdir()] == ["codeRollup.txt"]


@pytest.fixture
def large(root: Path) -> Path:
    """A project whose rollup takes several writes."""
    lay(root, {f"{number}.txt": f"{number}\n" * 80_000 for number in range(10, 20)})
    return lay(root, {"12.bin": "1" * 250_000 + "\0", ROLLUP: "old"})


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("call", ["write", "rename"])
def test_killed_at_any_call_the_rollup_is_the_old_or_the_new(call, large: Path, whole):
    for number in range(1, 100, 1 if whole else 3):
        (large / ROLLUP).write_text("old")
        inject = f"inject={call}:signal=SIGKILL:when={number}"
        command = ["strace", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", inject, *CODE_COMMIT, "rollup"]
        done = subprocess.run(command, cwd=large, capture_output=True, check=False, timeout=180)
        content = (large / ROLLUP).read_bytes()
        assert content == b"old" or (content.startswith(b"--- .git") and content.endswith(b"binary: 12.bin\n\n"))
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
    assert number > 1, f"there is no {call} to be killed at"
    assert content != b"old"


@pytest.mark.slow
@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_interrupted_it_leaves_nothing(signal_number, large: Path, whole):
    rounds = 30 if whole else 5
    for number in range(rounds):
        started = subprocess.Popen([*CODE_COMMIT, "rollup"], cwd=large, stderr=subprocess.DEVNULL)
        wait_until_it_takes_signals(started)
        time.sleep(0.5 * number / rounds)
        started.send_signal(signal_number)
        assert started.wait() in (0, -signal_number, 128 + signal_number)
        assert [path.name for path in (large / "agent-config").iterdir()] == ["codeRollup.txt"]


def wait_until_it_takes_signals(process: subprocess.Popen) -> None:
    """Before that, in Python's own start, an interrupt ends it with 1."""
    status = Path(f"/proc/{process.pid}/status")
    while process.poll() is None:
        caught = re.search(r"SigCgt:\s*(\w+)", status.read_text())
        if int(caught[1], 16) >> (signal.SIGTERM - 1) & 1:
            return
        time.sleep(0.01)


@pytest.mark.parametrize("other", [b"--- ok.txt ---\nother\n\n", b"\xff", None])
def test_what_somebody_wrote_over_it_meanwhile_is_not_read_back(other: bytes | None, root: Path):
    made = write_codebase(find_project(root), [], CodebaseRequest(), Redactor([]))
    (root / ROLLUP).unlink()
    if other is not None:
        (root / ROLLUP).write_bytes(other)
    with pytest.raises(NotSetUpError, match=r"codeRollup.txt was changed while the run began"):
        _ = made.text


def test_a_large_project_is_written_file_by_file(root: Path):
    lay(root, {f"{number}.txt": "a line\n" * 30_000 for number in range(100)})
    tracemalloc.start()
    made = code_commit.rollup(root)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 2 * peak < made.bytes == made.weight
    assert made.text.encode() == (root / ROLLUP).read_bytes()


def test_without_a_file_there_is_no_rollup_and_nothing_is_made(root: Path, run_code_commit: Run):
    done = run_code_commit(root, "rollup", "--exclude", "*")
    assert (done.returncode, "there is no file to roll up" in done.stderr) == (2, True)
    assert not (root / "agent-config").exists()


def test_two_rollups_at_once_both_come_through(root: Path):
    lay(root, {f"{number}.txt": f"{number}\n" * 5000 for number in range(50)})
    both = [subprocess.Popen([*CODE_COMMIT, "rollup", "--quiet"], cwd=root) for _ in range(2)]
    assert [process.wait(180) for process in both] == [0, 0]
    assert len(names(root)) == 51
    assert [path.name for path in (root / "agent-config").iterdir()] == ["codeRollup.txt"]


def test_a_link_in_its_place_is_replaced_not_followed(root: Path, run_code_commit: Run):
    (root / "agent-config").mkdir()
    (root / "precious").write_text("mine")
    (root / ROLLUP).symlink_to("../precious")
    rolled_up(run_code_commit, root)
    assert (root / "precious").read_text() == "mine"
    assert not (root / ROLLUP).is_symlink()


def test_what_it_says(root: Path, run_code_commit: Run):
    lay(root, {f"{number:02}.txt": "x" * number for number in range(20)} | {"bin": b"\0", "b2": b"\0"})
    lines = run_code_commit(root, "rollup").stderr.splitlines()
    assert lines[1] == "git does not track 20 of them: 00.txt, 01.txt, 02.txt, 03.txt, 04.txt and 15 more"
    shares = ".gitignore 4%, 19.txt 3%, 18.txt 3%, 17.txt 3%, 16.txt 3%"
    assert lines[2:] == [f"largest files: {shares}", "left out (binary): b2, bin"]
    lines = run_code_commit(root, "rollup", "--verbose").stderr.splitlines()
    assert lines[3:] == ["left out (binary): b2", "left out (binary): bin"]
    assert run_code_commit(root, "rollup", "--quiet").stderr == ""
    result = rolled_up(run_code_commit, root)
    assert result["tokens"] == round(len((root / ROLLUP).read_text()) / 3.2)
    assert (result["files"], result["bytes"]) == (21, (root / ROLLUP).stat().st_size)
    assert result["largest"][1] == {"path": "19.txt", "bytes": 19, "share": 19 / result["bytes"]}


def test_what_tells_of_the_whole_project_comes_first(root: Path, run_code_commit: Run):
    first = ["Readme.rst", "CLAUDE.md", "AGENTS.md", "LLMInstructions.md"]
    lay(root, dict.fromkeys([*first, "A.txt", "README.de.md", "src/README"], "x"))
    rolled_up(run_code_commit, root)
    assert names(root) == [
        "LLMInstructions.md",
        "AGENTS.md",
        "CLAUDE.md",
        "Readme.rst",
        ".gitignore",
        "A.txt",
        "README.de.md",
        "src/README",
    ]


UNWANTED = {
    "go.sum": ("x", "lock file"),
    "app.min.js": ("x", "minified"),
    "app.js.map": ("x", "minified"),
    "bundle.js": ("f(1);" * 1000 + "\n", "minified"),
    "lib/x.c": ("x", "vendored or generated"),
    "gen.py": ("x", "vendored or generated"),
    "big.sql": ("x\n" * 128_001, "over 256 kB"),
    "notes/a.md": ("x", "excluded"),
}


@pytest.mark.parametrize("repository", ["git", "no repository"])
def test_what_nobody_wrote_or_wants_stays_out_unless_it_is_named(repository, root: Path, run_code_commit: Run):
    lay(root, {name: text for name, (text, _) in UNWANTED.items()})
    marks = "/lib/* linguist-vendored\ngen*.py linguist-generated=true\ngenerator.py -linguist-generated\n"
    lay(root, {".gitattributes": marks, "lib/kept/y.c": "x", "generator.py": "x", "data.txt": "x" * 5000})
    lay(root, {"plates.js": f"const plates = {{\n  de: /^{'(A|B)' * 400}$/,\n}};\n"})
    lay(root, {"agent-config/config.toml": 'rollup_exclude = ["notes/"]\n'})
    if repository == "no repository":
        shutil.rmtree(root / ".git")
    result = rolled_up(run_code_commit, root)
    kept = [".gitattributes", ".gitignore", "data.txt", "generator.py", "lib/kept/y.c", "plates.js"]
    assert names(root) == kept
    assert reasons(result) == {name: reason for name, (_, reason) in UNWANTED.items()}
    assert (
        (root / ROLLUP)
        .read_bytes()
        .endswith(
            END + b"\nexcluded: notes/a.md\nlock file: go.sum\nminified: app.js.map, app.min.js, bundle.js\n"
            b"over 256 kB: big.sql\nvendored or generated: gen.py, lib/x.c\n\n"
        )
    )
    rolled_up(run_code_commit, root, "./big.sql", "go.sum", "bundle.js", "lib", "--include", "*.py")
    assert names(root) == ["big.sql", "bundle.js", "gen.py", "generator.py", "go.sum", "lib/kept/y.c"]


def test_tests_and_documents_that_are_kept_out_of_statistics_are_the_projects_own(root: Path, run_code_commit: Run):
    marks = "doc/** linguist-vendored\ntest/* linguist-vendored\n/zlib/** linguist-vendored\ntest/gen.js linguist-generated\n"
    own = ["doc/api.md", "doc/more/guide.rst", "test/run.js"]
    others = ["doc/html/index.html", "doc/html/notes.txt", "zlib/README.md", "zlib/a.c", "zlib/test/b.c", "test/gen.js"]
    lay(root, {".gitattributes": marks, **dict.fromkeys([*own, *others], "x")})
    result = rolled_up(run_code_commit, root)
    assert names(root) == [".gitattributes", ".gitignore", *own]
    assert reasons(result) == dict.fromkeys(others, "vendored or generated")


def test_an_interrupted_apply_is_repaired_first(root: Path, run_code_commit: Run):
    lay(root, {"a": "x", "agent-config/.transaction/stray": "x"})
    from code_commit.project import TRANSACTION_FOLDER

    (root / "agent-config/.transaction").rename(root / "agent-config" / TRANSACTION_FOLDER)
    run_code_commit(root, "rollup")
    assert not (root / "agent-config" / TRANSACTION_FOLDER).exists()


def test_what_check_sees_is_what_rollup_wrote(root: Path, run_code_commit: Run):
    lay(root, {"a": "x"})
    assert "codeRollup.txt is missing" in run_code_commit(root, "check").stdout
    rolled_up(run_code_commit, root)
    assert "codeRollup.txt is missing" not in run_code_commit(root, "check").stdout
