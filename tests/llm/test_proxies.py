"""The proxy to an address, by the variables."""

import pytest

from code_commit.errors import NotSetUpError
from code_commit.llm.proxies import proxy_for

URL = "https://llm.example.org/v1"
PROXY = "http://127.0.0.1:3128"


@pytest.mark.parametrize(
    ("exempt", "url", "is_direct"),
    [
        ("*", URL, True),
        ("example.org", URL, True),
        (".example.org", URL, True),
        ("*.example.org", URL, True),
        ("llm.example.org:443", URL, True),
        ("llm.example.org:8443", URL, False),
        ("ample.org", URL, False),
        ("localhost, 10.0.0.0/8 fd00::/8,[::1]", URL, False),
        ("10.0.0.0/8", "https://10.1.2.3/v1", True),
        ("10.0.0.0/8", "https://11.1.2.3/v1", False),
        ("fd00::/8", "https://[fd00::7]/v1", True),
        ("[fd00::7]:443", "https://[fd00::7]/v1", True),
        ("fd00::7", "https://[fd00::8]/v1", False),
        ("not an entry/64,[", URL, False),
    ],
)
def test_no_proxy(exempt, url, is_direct):
    assert proxy_for(url, {"HTTPS_PROXY": PROXY, "NO_PROXY": exempt}) == (None if is_direct else PROXY)


@pytest.mark.parametrize(
    ("environment", "proxy"),
    [
        ({}, None),
        ({"https_proxy": PROXY, "HTTPS_PROXY": "http://other"}, PROXY),
        ({"ALL_PROXY": "127.0.0.1:3128"}, PROXY),
        ({"HTTP_PROXY": PROXY}, None),
        ({"HTTPS_PROXY": PROXY, "ALL_PROXY": "nonsense://x"}, PROXY),
    ],
)
def test_which_variable_counts(environment, proxy):
    assert proxy_for(URL, environment) == proxy


@pytest.mark.parametrize("proxy", ["ftp://u:secret@x", "http://", "http://x:99999"])
def test_the_variable_that_is_at_fault_is_named_without_its_value(proxy):
    with pytest.raises(NotSetUpError, match="that ALL_PROXY names cannot be used") as caught:
        proxy_for(URL, {"ALL_PROXY": proxy})
    assert "secret" not in str(caught.value)
