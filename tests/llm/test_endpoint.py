"""Where a key may go: base URLs as the vendors' SDKs take them, checked before anything is sent."""

import pytest

from code_commit.errors import NotSetUpError
from code_commit.llm.models import check_base_url
from code_commit.llm.vendor import ModelChoice
from code_commit.settings import Settings

LOCAL = "http://127.0.0.1:4000"
GOOD = [
    ("openai", "", "https://api.openai.com/v1"),
    ("openai", "https://api.openai.com/v1", "https://api.openai.com/v1"),
    ("openai", "https://api.openai.com/v1/", "https://api.openai.com/v1"),
    ("openai", "https://api.openai.com/v1///", "https://api.openai.com/v1"),
    ("openai", "https://eu.api.openai.com", "https://eu.api.openai.com/v1"),
    ("openai", "HTTPS://API.OpenAI.com/V2", "https://api.openai.com/V2"),
    ("openai", LOCAL + "/llm/openai", LOCAL + "/llm/openai"),
    ("anthropic", "", "https://api.anthropic.com/v1"),
    ("anthropic", "https://api.anthropic.com", "https://api.anthropic.com/v1"),
    ("anthropic", "https://api.anthropic.com/", "https://api.anthropic.com/v1"),
    ("anthropic", "https://api.anthropic.com/v1", "https://api.anthropic.com/v1"),
    ("anthropic", LOCAL + "/anthropic/", LOCAL + "/anthropic/v1"),
    ("gemini", "", "https://generativelanguage.googleapis.com/v1beta"),
    ("gemini", "https://generativelanguage.googleapis.com", "https://generativelanguage.googleapis.com/v1beta"),
    ("gemini", "https://generativelanguage.googleapis.com/v1beta/", "https://generativelanguage.googleapis.com/v1beta"),
    (
        "gemini",
        "https://generativelanguage.googleapis.com/v1alpha",
        "https://generativelanguage.googleapis.com/v1alpha",
    ),
    ("gemini", LOCAL + "/gemini", LOCAL + "/gemini/v1beta"),
    ("chat", "http://localhost:11434/v1", "http://localhost:11434/v1"),
    ("chat", "http://LOCALHOST:11434/v1/", "http://localhost:11434/v1"),
    ("chat", "http://127.9.9.9/v1", "http://127.9.9.9/v1"),
    ("chat", "http://[::1]:8080/v1", "http://[::1]:8080/v1"),
    ("chat", "https://api.deepseek.com", "https://api.deepseek.com"),
    ("chat", "https://h/a%20b/~x/v1", "https://h/a%20b/~x/v1"),
    ("replay", "", ""),
    ("replay", "ftp://ignored", ""),
]
BAD = [
    ("chat", "", "needs --base-url"),
    ("openai", "api.openai.com/v1", "must be an address"),
    ("openai", "ftp://api.openai.com", "must be an address"),
    ("openai", "file:///etc/passwd", "must be an address"),
    ("openai", "//host/v1", "must be an address"),
    ("openai", "https:///v1", "must be an address"),
    ("openai", "https://:443/v1", "must be an address"),
    ("openai", "https://h:0/v1", "must be an address"),
    ("openai", "https://h:99999/v1", "must be an address"),
    ("openai", "https://h:x/v1", "must be an address"),
    ("openai", "https://[::1/v1", "must be an address"),
    ("openai", "https://user:hunter22@h/v1", "must be an address"),
    ("openai", "https://hunter22@h/v1", "must be an address"),
    ("openai", "https://@h/v1", "must be an address"),
    ("openai", "https://h/v1?key=hunter22", "must be an address"),
    ("openai", "https://h/v1?", "must be an address"),
    ("openai", "https://h/v1#hunter22", "must be an address"),
    ("openai", "https://h/v 1", "must be an address"),
    ("openai", "https://h\\@evil/v1", "must be an address"),
    ("openai", "https://h/v1\r\nX-Header: 1", "must be an address"),
    ("openai", "https://h/\x07/v1", "must be an address"),
    ("openai", "https://hôst/v1", "must be an address"),
    ("openai", "http://example.com/v1", "unencrypted"),
    ("openai", "http://10.0.0.5/v1", "unencrypted"),
    ("openai", "http://0.0.0.0/v1", "unencrypted"),
    ("openai", "http://localhost.evil.example/v1", "unencrypted"),
    ("openai", "http://127.0.0.1.evil.example/v1", "unencrypted"),
    ("openai", "http://[::ffff:10.0.0.1]/v1", "unencrypted"),
    ("openai", "http://2130706433/v1", "unencrypted"),
    ("openai", "http://127.0.0.1@evil.example/v1", "must be an address"),
]


@pytest.mark.parametrize(("provider", "url", "normalised"), GOOD)
def test_good_base_urls(provider, url, normalised):
    assert check_base_url(ModelChoice(provider, "m"), Settings(base_url=url)) == normalised
    if normalised:
        assert check_base_url(ModelChoice(provider, "m"), Settings(base_url=normalised)) == normalised


@pytest.mark.parametrize(("provider", "url", "complaint"), BAD)
def test_bad_base_urls(provider, url, complaint):
    with pytest.raises(NotSetUpError, match=complaint) as caught:
        check_base_url(ModelChoice(provider, "m"), Settings(base_url=url))
    assert "hunter22" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_http_elsewhere_only_when_it_is_allowed():
    settings = Settings(base_url="http://10.0.0.5:8000/v1", allow_http=True)
    assert check_base_url(ModelChoice("chat", "m"), settings) == "http://10.0.0.5:8000/v1"
