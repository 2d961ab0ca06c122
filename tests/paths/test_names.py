"""The string rules: every path of the table, and arbitrary text."""

import os
from collections import Counter
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from path_table import ACCEPTED, REJECTED
from telling import tell

from code_commit.changes import FileReplacement, RejectedResponseError
from code_commit.paths.names import Limits, find_flood, find_path_fault, find_protected, fold
from code_commit.paths.protected import PROTECTED
from code_commit.project import Project, find_project
from code_commit.redaction import Redactor
from code_commit.settings import Settings
from code_commit.verify import Rules, capture_rules, verify_changes

LIMITS = Limits(name=255, path=4000)


def broken_rule(path: str) -> str | None:
    fault = find_path_fault(path, LIMITS)
    if fault:
        return fault[0]
    return "protected" if find_protected(path, ()) else None


def test_each_path_of_the_table_is_rejected_by_its_rule():
    assert {ascii(path): broken_rule(path) for path, _ in REJECTED} == {ascii(path): rule for path, rule in REJECTED}


def test_names_that_real_projects_use_pass():
    assert {ascii(path): broken_rule(path) for path in ACCEPTED} == dict.fromkeys(map(ascii, ACCEPTED))


@pytest.mark.parametrize("piece", ["x", ".", "a/", ". ", "\u200b", "[", "~1", "../", "a.", "\u65e5", "'", "con"])
def test_of_a_path_of_any_length_nothing_but_the_length_is_looked_at(piece):
    rule, message = find_path_fault(piece * (1_000_000 // len(piece)), LIMITS)
    assert rule == "too-long"
    assert len(message) < 200


TRACKED = frozenset(
    {"src", "src/aux.c", "-x", "~", "$lib", "$lib/a.ts", "aux", "aux/a.c", "a\\b", "c:x", "x~1", "a\tb", "\ud800", "q."}
)
OF_TRACKED = {
    "src/aux.c": None,
    "-x": None,
    "~": None,
    "$lib/a.ts": None,
    "$lib/b.ts": None,
    "aux/-b": None,
    "aux/sub/c": None,
    "a\\b": None,
    "c:x": None,
    "x~1": None,
    "q.": None,
    "src/nul.c": "windows-name",
    "aux/nul": "windows-name",
    "$lib/../x": "outside",
    "$lib//x": "unclear-path",
    "/aux/a.c": "outside",
    "../aux/a.c": "outside",
    "a\tb": "unclear-path",
    "\ud800": "unclear-path",
    "aux/" + "n" * 256: "too-long",
    "-y": "unclear-path",
}


@pytest.mark.parametrize(("path", "rule"), OF_TRACKED.items())
def test_rules_for_new_names_do_not_hold_for_what_git_tracks(path, rule):
    fault = find_path_fault(path, LIMITS, lambda: TRACKED)
    assert (fault and fault[0]) == rule


FLOODS = {
    # one path with a number in it, how many paths may be like that, how many may not
    "deep below one folder": ("a/" * 600 + "{}", 20, 40),
    "long": ("/".join(["x" * 250] * 15) + "/{}", 200, 400),
    "each in folders of its own": ("{}" + "/a" * 10, 4_900, 5_100),
    "none too long alone": ("a/" * 3000 + "{}", 40, None),
}


@pytest.mark.parametrize(("path", "few", "many"), FLOODS.values(), ids=FLOODS)
def test_paths_that_are_too_much_together_are_rejected_at_once(path, few, many, project_folder):
    assert find_flood(map(path.format, range(few)), LIMITS) is None
    if many:
        project = find_project(project_folder)
        rules = capture_rules(project, Settings(), Redactor([]))
        with pytest.raises(RejectedResponseError) as caught:
            verify_changes(
                [FileReplacement(path.format(number), "x\n") for number in range(many)], project, rules, None
            )
        assert caught.value.reasons == [
            "the paths are too long and too deep, all together: send fewer files, in fewer folders"
        ]


def test_the_table_is_as_large_as_the_documentation_says(capsys):
    rejected, accepted = len(REJECTED), len(ACCEPTED)
    assert len({path for path, _ in REJECTED} | set(ACCEPTED)) == rejected + accepted
    assert rejected + accepted >= 600
    rules = ", ".join(f"{rule} {count}" for rule, count in Counter(rule for _, rule in REJECTED).items())
    tell(capsys, f"paths: {rejected} rejected ({rules}), {accepted} accepted")


@pytest.fixture(scope="module")
def bare_root(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Rules]:
    """A folder that is no repository: arbitrary paths are verified against it, nothing is ever written."""
    project = Project(tmp_path_factory.mktemp("root").resolve())
    return project, capture_rules(project, Settings(), Redactor([]))


def rejected_rules(paths: list[str], project: Project, rules: Rules) -> dict[str, str]:
    try:
        verify_changes([FileReplacement(path, "x\n", line) for line, path in enumerate(paths, 1)], project, rules, None)
    except RejectedResponseError as error:
        return {paths[violation.line - 1]: violation.rule for violation in error.violations}
    return {}


def test_all_violations_of_a_response_are_told_at_once(bare_root):
    for start in range(0, len(REJECTED), 50):
        some = REJECTED[start : start + 50]
        assert rejected_rules([path for path, _ in some], *bare_root) == dict(some)


def test_fifty_violations_are_told_and_the_rest_is_counted(bare_root):
    with pytest.raises(RejectedResponseError) as caught:
        verify_changes([FileReplacement(f"../{number}", "") for number in range(10_000)], *bare_root, None)
    assert (len(caught.value.violations), caught.value.more) == (50, 9_950)
    assert str(caught.value).endswith("and 9,950 more")


@pytest.mark.parametrize("start", range(0, len(REJECTED), 50))
def test_a_violation_can_always_be_printed_and_stored(bare_root, start):
    with pytest.raises(RejectedResponseError) as caught:
        verify_changes([FileReplacement(path, "", 1) for path, _ in REJECTED[start : start + 50]], *bare_root, None)
    for violation in caught.value.violations:
        assert violation.path.encode("utf-8") is not None
        assert str(violation).isprintable()
        assert violation.message.count(":") >= 1


characters = st.one_of(
    st.characters(),
    st.characters(categories=["Cs", "Cc", "Cf", "Zs", "Mn", "Co"]),
    st.sampled_from("./\\:~$ -.gitGIT*[]!%\u200b\uff0e\u2024agentcofdb"),
)
names = st.sampled_from(
    [*PROTECTED, "..", ".", "", " ", "git~1", "HEAD", "objects", "refs", "src", "a.rs", "con", "\u65e5\u672c"]
)
paths = st.one_of(
    st.text(characters, max_size=12),
    st.lists(st.one_of(names, st.text(characters, max_size=4)), min_size=1, max_size=5).map("/".join),
)


@given(st.lists(paths, min_size=1, max_size=4))
def test_any_text_is_refused_or_stays_inside_the_root_and_off_the_protected_names(bare_root, path_list):
    project, _ = bare_root
    for path in path_list:
        if broken_rule(path) is not None:
            continue
        written = os.path.normpath(f"{project.root}/{path}")
        assert written == str(PurePosixPath(project.root) / path)
        assert Path(written).is_relative_to(project.root / path.split("/")[0])
        first, *rest = map(fold, path.split("/"))
        assert first not in {fold(name) for name in PROTECTED}
        assert not {".git", ".gitignore", "userspecification.md"} & {first, *rest}
