"""The values of `[headers]`: what may stand there, and where they are looked up."""

import pytest

from code_commit.errors import NotSetUpError
from code_commit.headers import check_headers, look_up, secret_files

SECRET = "s3cr3t-0123456789"

UNFIT = {
    "a line end": {"X-A": f"{SECRET}\r\nX-Evil: 1"},
    "a blank at the end": {"X-A": f"{SECRET} "},
    "empty": {"X-A": ""},
    "no ASCII": {"X-A": f"{SECRET}é"},
    "endless": {"X-A": SECRET * 5000},
    "a number": {"X-A": 1},
    "a list": {"X-A": [SECRET]},
    "another source": {"X-A": {"exec": SECRET}},
    "two sources": {"X-A": {"env": "A", "file": "B"}},
    "no name of a variable": {"X-A": {"env": ""}},
    "a variable that is no text": {"X-A": {"env": 1}},
    "a name with a blank": {"X A": SECRET},
    "an empty name": {"": SECRET},
    "the host": {"Host": SECRET},
    "the length": {"content-length": "3"},
    "twice": {"X-A": SECRET, "x-a": SECRET},
}


@pytest.mark.parametrize("table", UNFIT.values(), ids=UNFIT)
def test_what_no_header_can_carry_is_refused_and_not_quoted(table):
    with pytest.raises(ValueError, match=r"^has ") as caught:
        check_headers(table)
    assert SECRET not in str(caught.value)


def test_texts_variables_and_files(tmp_path):
    (tmp_path / "token").write_text(f"{SECRET}\n")
    (tmp_path / "token").chmod(0o600)
    table = {"X-Team": "a b", "X-Token": {"env": "TOKEN"}, "X-File": {"file": str(tmp_path / "token")}}
    assert check_headers(table) == table
    found = {name: look_up(name, value, {"TOKEN": "t"}) for name, value in table.items()}
    assert found == {"X-Team": "a b", "X-Token": "t", "X-File": SECRET}
    assert secret_files(table, "~") == [tmp_path / "token", secret_files({}, "~")[0]]


MISSING = {
    "no such variable": ({"env": "TOKEN"}, "the variable TOKEN is not set"),
    "no such file": ({"file": "/none/token"}, "/none/token: No such file"),
    "a relative file": ({"file": "token"}, "token is a relative path"),
    "a folder": ({"file": "/"}, ": /: "),
}


@pytest.mark.parametrize(("value", "told"), MISSING.values(), ids=MISSING)
def test_what_is_missing_is_named(value, told):
    with pytest.raises(NotSetUpError, match=rf"^\[headers\] X-Token.*{told}"):
        look_up("X-Token", value, {})


def test_a_variable_with_a_line_end_and_a_file_for_all_are_refused(tmp_path):
    with pytest.raises(NotSetUpError, match="cannot go in a header") as caught:
        look_up("X-Token", {"env": "TOKEN"}, {"TOKEN": f"{SECRET}\nX-Evil: 1"})
    assert SECRET not in str(caught.value)
    (tmp_path / "token").write_text(SECRET)
    (tmp_path / "token").chmod(0o644)
    with pytest.raises(NotSetUpError, match="can be read by others"):
        look_up("X-Token", {"file": str(tmp_path / "token")})
