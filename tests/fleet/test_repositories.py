"""Questions to git about repositories, here and behind a URL, without a clone."""

import time

from command import by_count, git
from fleet_tools import add_submodule, make_list, make_repository, task

from code_commit.fleet.repositories import find_bases, find_unfit
from code_commit.fleet.tasks import read_tasks


def test_what_a_run_would_refuse_of_a_commit_is_known_without_a_clone(tmp_path):
    whole, bare = make_repository(tmp_path / "whole"), make_repository(tmp_path / "bare")
    folder = make_repository(tmp_path / "folder")
    git(folder, "rm", "-q", "build.sh")
    (folder / "build.sh").mkdir()
    git(folder, "mv", "ok.txt", "build.sh")
    git(folder, "commit", "-qm", "a folder")
    add_submodule(modules := make_repository(tmp_path / "modules"))
    git(bare, "rm", "-q", "build.sh", ".gitignore")
    git(bare, "commit", "-qm", "neither")
    lines = [
        task("whole", whole),
        task("bare", bare),
        task("folder", folder),
        task("supplied", bare, build="#!/bin/sh\n", setup=True),
        task("before", bare, commit="HEAD^"),
        task("modules", modules),
        task("without", modules, overlay={".gitmodules": None}),
        task("url", f"file://{whole}"),
        task("gone", f"file://{tmp_path}/gone"),
        task("bare-url", f"file://{bare}"),
        task("before-url", f"file://{bare}", commit="old"),
        task("no-such", f"file://{bare}", commit="nowhere"),
        task("empty", tmp_path / "empty"),
    ]
    git(bare, "branch", "old", "HEAD^")
    git(tmp_path, "init", "-q", "empty")
    tasks = read_tasks(make_list(tmp_path / "tasks.jsonl", *lines))
    told = sorted(f"{tasks[number].id}: {told}" for number, told in find_unfit(dict(enumerate(tasks))))
    no_build = 'build.sh is missing: supply it as "build" of the task or the defaults line (with -m: --build FILE)'
    no_line = 'its .gitignore has no line /agent-config: "setup": true supplies it'
    no_modules = (
        'the commit has submodules, which a fleet does not fetch; to run without them: "overlay": {".gitmodules": null}'
    )
    gone = next(line for line in told if line.startswith("gone: "))
    assert gone.startswith(f"gone: repository: git clone: '{tmp_path}/gone' does not appear to be")
    assert told == [
        f"bare-url: {no_build}",
        f"bare-url: {no_line}",
        f"bare: {no_build}",
        f"bare: {no_line}",
        f"empty: commit: {tmp_path}/empty has no HEAD",
        f"folder: {no_build}",
        gone,
        f"modules: {no_modules}",
        f"no-such: commit: file://{bare} has no nowhere",
    ]


def test_a_base_is_what_its_branch_is_now(tmp_path):
    root = make_repository(tmp_path / "root")
    head = git(root, "rev-parse", "HEAD").strip()
    git(root, "tag", "-m", "a tag", "v1")
    places = [str(root), f"file://{root}", f"file://{tmp_path}/gone"]
    wanted = [(place, base) for place in places for base in ("HEAD", "main", "v1", "nowhere")]
    assert find_bases(wanted) == {(place, base): head for place, base in wanted[:8] if base != "nowhere"}
    git(root, "commit", "-q", "--allow-empty", "-m", "more")
    moved = git(root, "rev-parse", "HEAD").strip()
    assert [find_bases(wanted)[place, base] for place in places[:2] for base in ("main", "v1")] == [moved, head] * 2


def test_a_long_list_is_checked_in_seconds(tmp_path):
    repository = make_repository(tmp_path / "repository", f"# {'x' * 4000}")
    tasks = make_list(tmp_path / "tasks.jsonl", *(task(f"t{number}", repository) for number in range(4000)))
    begun = time.process_time()
    assert len(read_tasks(tasks, find_unfit)) == 4000
    assert time.process_time() - begun < 3


def test_a_repository_is_reached_as_by_the_user_s_git(tmp_path, monkeypatch):
    """By an address that the settings rewrite, by a program in place of ssh; no hook of the settings runs."""
    root = make_repository(tmp_path / "web")
    head = git(root, "rev-parse", "HEAD").strip()
    hooks, ssh = tmp_path / "hooks", tmp_path / "ssh"
    hooks.mkdir()
    ssh.write_text('#!/bin/sh\nfor command; do :; done\neval "$command"\n')
    (hooks / "reference-transaction").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    for program in (ssh, hooks / "reference-transaction"):
        program.chmod(0o755)
    settings = {f"url.{tmp_path}/.insteadOf": "rewritten:", "core.hooksPath": str(hooks)}
    for name, value in (by_count(settings) | {"GIT_SSH_COMMAND": f"{ssh} -x", "GIT_SSH_VARIANT": "ssh"}).items():
        monkeypatch.setenv(name, value)
    places = ("rewritten:web", f"git@nowhere.invalid:{root}")
    assert find_bases((place, "main") for place in places) == {(place, "main"): head for place in places}
    tasks = read_tasks(make_list(tmp_path / "tasks.jsonl", *(task(f"t{n}", url) for n, url in enumerate(places))))
    assert list(find_unfit(dict(enumerate(tasks)))) == []
    assert not (tmp_path / "ran").exists()
