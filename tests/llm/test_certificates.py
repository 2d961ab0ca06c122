"""The authorities that are trusted, and the client's own certificate."""

import json
import re
import ssl
import subprocess

import pytest
from asking import PROMPT, WAYS, Clock, Listener, ask, open_way
from cryptography.hazmat.primitives import serialization
from fake_server import FakeServer
from tls_server import demanding_server, tls_server

from code_commit import api
from code_commit.errors import LLMError, NotSetUpError

CHAT = WAYS["chat"]


def test_a_certificate_that_nobody_trusts_is_an_error_at_once(certificate):
    with tls_server(certificate) as server:
        listener = Listener()
        with open_way(CHAT, f"https://127.0.0.1:{server.port}/v1", Clock().timing()) as llm:
            with pytest.raises(LLMError, match=r"certificate of 127.0.0.1 is not trusted \(self-signed.*SSL_CERT_FILE"):
                llm.complete(PROMPT, listener)
    assert not listener.retries
    assert not server.requests


def test_an_authority_of_ones_own_by_file(certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with tls_server(certificate) as server, open_way(CHAT, f"https://127.0.0.1:{server.port}/v1") as llm:
        assert llm.complete(PROMPT, Listener()).text == "over TLS"


def test_an_authority_of_ones_own_by_folder(certificate, monkeypatch, tmp_path):
    command = ["openssl", "x509", "-hash", "-noout", "-in", str(certificate)]
    try:
        name = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except FileNotFoundError:
        pytest.skip("there is no openssl command to name the file")
    (tmp_path / f"{name}.0").write_bytes(certificate.read_bytes())
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    with tls_server(certificate) as server, open_way(CHAT, f"https://127.0.0.1:{server.port}/v1") as llm:
        assert llm.complete(PROMPT, Listener()).text == "over TLS"


UNREADABLE = {
    "no file": ({"SSL_CERT_FILE": "/none.pem"}, r"SSL_CERT_FILE names /none\.pem, .*\(No such file or directory\)"),
    "no PEM": ({"SSL_CERT_FILE": __file__}, r"SSL_CERT_FILE names \S*test_certificates\.py, .* no PEM certificate"),
    "no folder": ({"SSL_CERT_DIR": "/none:/nor"}, r"SSL_CERT_DIR names /none:/nor, which is not a folder"),
}
HTTPS = ("--model", "chat:m", "--base-url", "https://127.0.0.1:1/v1")
LOCAL = ("--model", "chat:m", "--base-url", "http://127.0.0.1:1/v1")


@pytest.mark.parametrize(("variables", "told"), UNREADABLE.values(), ids=UNREADABLE)
def test_authorities_that_cannot_be_read(variables, told, monkeypatch, project_folder, run_code_commit):
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    with pytest.raises(NotSetUpError, match=told):
        open_way(CHAT, "https://127.0.0.1:1/v1")
    (problem,) = api.check(project_folder, model="chat:m", base_url="chat:https://127.0.0.1:1/v1")
    assert re.search(told, problem)
    ended = run_code_commit(project_folder, *HTTPS, env=variables)
    assert (ended.returncode, ended.stdout, (project_folder / "agent-config/logs").exists()) == (2, "", False)
    assert re.search(told, " ".join(ended.stderr.split()))


@pytest.mark.parametrize(
    ("options", "is_told"),
    [
        (HTTPS, "authorities"),
        ((*LOCAL, "--fallback-model", "openai:o"), "fallback authorities"),
        ((*LOCAL, "--rollup", "select", "--select-model", "openai:o"), "select authorities"),
        ((*LOCAL, "--select-model", "openai:o"), ""),
        (LOCAL, ""),
        (("--model", "replay:agent-config"), ""),
    ],
)
def test_check_reads_the_authorities_of_each_address_that_needs_them(options, is_told, project_folder, run_code_commit):
    variables = {"SSL_CERT_FILE": "/none.pem", "OPENAI_API_KEY": "test-key-0123456789"}
    printed = run_code_commit(project_folder, "check", "--json", *options, env=variables).stdout
    checks = {check["name"]: check["problem"] for check in json.loads(printed)["checks"]}
    assert [name for name in checks if name.endswith("authorities")] == [is_told] * bool(is_told)


def test_check_names_the_variables_whose_authorities_it_read(certificate, project_folder, run_code_commit):
    variables = {"SSL_CERT_FILE": str(certificate), "SSL_CERT_DIR": str(certificate.parent)}
    checked = run_code_commit(project_folder, "check", *HTTPS, env=variables)
    assert re.search(r"ok +authorities +SSL_CERT_FILE and SSL_CERT_DIR\n", checked.stdout)


def test_without_variables_the_systems_authorities_are_asked(monkeypatch, certificate):
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    with tls_server(certificate) as server:
        with open_way(CHAT, f"https://127.0.0.1:{server.port}/v1", Clock().timing()) as llm:
            with pytest.raises(LLMError, match=r"certificate of 127.0.0.1 is not trusted"):
                llm.complete(PROMPT, Listener())


def test_a_client_certificate_in_one_file_or_two(certificate, monkeypatch, tmp_path):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    key, mark, rest = certificate.read_text().partition("-----END PRIVATE KEY-----\n")
    (tmp_path / "key.pem").write_text(key + mark)
    (tmp_path / "cert.pem").write_text(rest)
    two = {"client_cert": str(tmp_path / "cert.pem"), "client_key": str(tmp_path / "key.pem")}
    for settings in ({"client_cert": str(certificate)}, two):
        with demanding_server(certificate) as server:
            url = f"https://127.0.0.1:{server.port}/v1"
            with open_way(CHAT, url, Clock().timing(), **settings) as llm:
                assert llm.complete(PROMPT, Listener()).text == "over TLS"


def test_a_server_that_demands_one_says_which_setting_names_it(certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with demanding_server(certificate) as server:
        url = f"https://127.0.0.1:{server.port}/v1"
        with open_way(CHAT, url, Clock().timing()) as llm:
            listener = Listener()
            with pytest.raises(LLMError, match="client_cert and client_key"):
                llm.complete(PROMPT, listener)
    assert listener.unpriced == 0, "no server has read the request"


def test_a_key_with_a_pass_phrase_is_refused_and_not_asked_for(certificate, tmp_path):
    key = serialization.load_pem_private_key(certificate.read_bytes(), None)
    secret = serialization.BestAvailableEncryption(b"phrase")
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, secret)
    (tmp_path / "key.pem").write_bytes(pem)
    two = {"client_cert": str(certificate), "client_key": str(tmp_path / "key.pem")}
    with pytest.raises(NotSetUpError, match="has a passphrase"):
        open_way(CHAT, "https://127.0.0.1:1/v1", **two)
    (tmp_path / "cert.pem").write_text(certificate.read_text().partition("-----END PRIVATE KEY-----\n")[2])
    with pytest.raises(NotSetUpError, match=r"contains no key\): .* the key with client_key"):
        open_way(CHAT, "https://127.0.0.1:1/v1", client_cert=str(tmp_path / "cert.pem"))


def test_plain_http_builds_no_tls_context(monkeypatch):
    def fail(*_, **__):
        raise AssertionError

    monkeypatch.setattr(ssl, "create_default_context", fail)
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", fail)
    with FakeServer(["x"]) as server:
        assert ask(CHAT, server)[0].text == "x"
    with pytest.raises(AssertionError):
        open_way(CHAT, "https://127.0.0.1:1/v1")
