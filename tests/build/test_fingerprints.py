"""What a build does to protected files is undone and told."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from build_watch import as_user, open_files, run_build
from command import wait_for
from measure import cpu_seconds, least

from code_commit.build import Builder
from code_commit.build.fingerprints import MOST_ENTRIES, Damage, Fingerprints, Quarantine
from code_commit.errors import BuildError, Interrupted
from code_commit.project import find_project


@pytest.fixture
def full_project(project_folder):
    """The project with every protected file, and a nested specification that git tracks."""
    for name in ("codeRollup.sh", "LLMInstructions.md", "UserSpecification.md", "docs/UserSpecification.md"):
        (project_folder / name).parent.mkdir(exist_ok=True)
        (project_folder / name).write_text(f"the text of {name}\n")
    (project_folder / "codeRollup.sh").chmod(0o755)
    hook = project_folder / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)
    (project_folder / "agent-config" / "config.toml").write_text("")
    subprocess.run(["git", "add", "-A"], cwd=project_folder, check=True)
    return project_folder


def tree_of(folder):
    """Return {path: what it is} of everything but what git itself rewrites."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name.startswith((".git/index", ".git/objects", ".git/logs")) or name in ("build.sh", "agent-config/logs"):
            continue
        status = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(status.st_mode) else path.readlink() if path.is_symlink() else None
        found[name] = (stat.filemode(status.st_mode), status.st_uid, status.st_gid, content)
    return found


DAMAGE = {
    # script: the paths that the message names
    "echo '*' >> .gitignore": [".gitignore (changed)"],
    "rm .gitignore": [".gitignore (removed)"],
    "rm .gitignore; ln -s /etc/passwd .gitignore": [".gitignore (changed)"],
    "rm .gitignore; mkfifo .gitignore": [".gitignore (changed)"],
    "rm .gitignore; mkdir -p .gitignore/deep; touch .gitignore/deep/x": [".gitignore (changed)"],
    "cp .gitignore x; echo y >> x; mv x .gitignore": [".gitignore (changed)"],
    "sed -i s/agent/other/ .gitignore; touch -r /etc/passwd .gitignore": [".gitignore (changed)"],
    "chmod 666 .gitignore": [".gitignore (changed)"],
    "echo exit 0 > build.sh": ["build.sh (changed)"],
    "chmod -x build.sh": ["build.sh (changed)"],
    "mv build.sh b": ["build.sh (removed)"],
    "echo x > codeRollup.sh": ["codeRollup.sh (changed)"],
    "echo x > LLMInstructions.md": ["LLMInstructions.md (changed)"],
    "echo x > UserSpecification.md": ["UserSpecification.md (changed)"],
    "echo x > docs/UserSpecification.md": ["docs/UserSpecification.md (changed)"],
    "rm -r docs": ["docs/UserSpecification.md (removed)"],
    "echo '#!/bin/sh' > .git/hooks/post-checkout": [".git/hooks/post-checkout (new)"],
    "echo x >> .git/hooks/pre-commit": [".git/hooks/pre-commit (changed)"],
    "rm -rf .git/hooks; ln -s ../../elsewhere .git/hooks": [".git/hooks (changed)", ".git/hooks/pre-commit (removed)"],
    "rm -r .git/hooks": [".git/hooks (removed)", ".git/hooks/pre-commit (removed)"],
    "git config core.fsmonitor ./evil": [".git/config (changed)"],
    "git config core.hooksPath .evil": [".git/config (changed)"],
    "echo '*' >> .git/info/exclude": [".git/info/exclude (changed)"],
    "echo '* -diff' > .git/info/attributes": [".git/info/attributes (new)"],
    "echo other > agent-config/query.txt": ["agent-config/query.txt (changed)"],
    "rm -r agent-config": [
        "agent-config (removed)",
        "agent-config/codeRollup.txt (removed)",
        "agent-config/query.txt (removed)",
    ],
    "mkdir -p agent-config/system-prompts; echo x > agent-config/system-prompts/initial_query.txt": [
        "agent-config/system-prompts (new)"
    ],
    "echo k > agent-config/gemini-key.txt": ["agent-config/gemini-key.txt (new)"],
    "chmod 777 agent-config": ["agent-config (changed)"],
    "mv agent-config x; ln -s x agent-config": ["agent-config (changed)"],
    "mv .git .git2; ln -s .git2 .git": [".git (changed)"],
    "mv .git .git2; git init -q; git config core.fsmonitor ./evil": [".git (changed)"],
    "chmod 666 .git .": [" (changed)", ".git (changed)"],
    "chmod 0 .git/hooks": [".git/hooks (changed)"],
    "rm .gitignore; mkdir -m 0 .gitignore": [".gitignore (changed)"],
    "rm -r .git/hooks; mkfifo .git/hooks": [".git/hooks (changed)", ".git/hooks/pre-commit (removed)"],
    "rm -r .git/hooks; ln -s ../docs .git/hooks": [".git/hooks (changed)", ".git/hooks/pre-commit (removed)"],
    "mv .git/info i; ln -s ../i .git/info": [".git/info (changed, and cannot be put back: what"],
    "mv .git .git2; echo x > .git": [".git (changed)"],
}


@pytest.mark.parametrize("script", DAMAGE)
def test_what_a_build_changed_is_put_back_and_named(build, full_project, script):
    elsewhere = full_project.parent / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (elsewhere / "not ours").touch()
    (full_project / "build.sh").write_text(f"#!/bin/sh\n{script}\n")
    before = tree_of(full_project)
    built = build(None)
    assert isinstance(built.error, BuildError)
    for damage in DAMAGE[script]:
        assert damage in str(built.error)
    after = tree_of(full_project)
    assert {name: after.get(name) for name in before} == before
    assert (full_project / "build.sh").read_text() == f"#!/bin/sh\n{script}\n"
    assert os.access(full_project / "build.sh", os.X_OK)
    assert not list(full_project.rglob("*.new"))
    assert [path.name for path in elsewhere.iterdir()] == ["not ours"]
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o700


OF_ANOTHER_USER = [
    "chmod 0 .",
    "chmod 0 .git",
    "chmod 0 .git/hooks agent-config .git/info",
    "chmod 0 .gitignore build.sh agent-config/query.txt",
    "rm -r .git/hooks; ln -s ../../elsewhere .git/hooks",
    "mv agent-config x; ln -s ../elsewhere agent-config",
    "mv .git .git2; ln -s .git2 .git",
    "chmod 500 . .git",
]


@pytest.mark.root
@pytest.mark.parametrize("script", OF_ANOTHER_USER)
def test_what_a_build_of_another_user_changed_is_put_back_too(full_project, script):
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="guards-")))
    try:
        full_project = Path(shutil.move(full_project, folder))
        (folder / "elsewhere").mkdir()
        (folder / "elsewhere" / "pre-commit").write_text("theirs")
        (full_project / "build.sh").write_text(f"#!/bin/sh\n{script}\n")
        subprocess.run(["chown", "-R", "65534:65534", folder], check=True)
        before = tree_of(folder)
        error = as_user(65534, lambda: error_of(full_project))
        assert "it was put back" in error
        after = tree_of(folder)
        assert {name: after.get(name) for name in before} == before
    finally:
        shutil.rmtree(folder)


@pytest.mark.root
@pytest.mark.parametrize(
    "script", ["rm .gitignore", "rm -r .git/hooks", "chown 0:0 .gitignore .git/hooks", "chown :0 agent-config build.sh"]
)
def test_owner_and_group_are_put_back(full_project, script):
    (full_project / "build.sh").write_text(f"#!/bin/sh\n{script}\n")
    for place in (full_project / name for name in (".gitignore", "build.sh", ".git/hooks", "agent-config")):
        os.chown(place, 12345, 23456)
    before = tree_of(full_project)
    assert "put back" in error_of(full_project)
    after = tree_of(full_project)
    assert {name: after.get(name) for name in before} == before


def error_of(folder):
    with pytest.raises(BuildError) as caught:
        run_build(find_project(folder), len, timeout=0, environment=dict(os.environ))
    return str(caught.value)


def test_nothing_is_put_back_to_where_a_link_leads(build, full_project):
    elsewhere = full_project.parent / "elsewhere"
    elsewhere.mkdir()
    error = str(build("#!/bin/sh\nrm -r docs; ln -s ../elsewhere docs\n").error)
    assert "docs/UserSpecification.md (removed, and cannot be put back" in error
    assert not list(elsewhere.iterdir())


def test_a_repository_that_is_gone_for_good_is_told(build, full_project):
    error = str(build("#!/bin/sh\nmv .git x; cp -r x .git; rm -r x\n").error)
    assert ".git (changed, and cannot be put back" in error


def test_a_repository_that_is_made_anew_is_told(build, full_project):
    """The new folder may get the inode number of the old."""
    for _ in range(5):
        error = str(build("#!/bin/sh\nrm -rf .git; git init -q\n").error)
        assert ".git (changed, and cannot be put back" in error


@pytest.mark.parametrize("swap", ["mv ../elsewhere $PWD", "ln -s elsewhere $PWD", "true"])
def test_what_stands_in_the_place_of_the_project_is_left_alone(build, project_folder, swap):
    elsewhere = project_folder.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / ".gitignore").write_text("theirs\n")
    error = str(build(f"#!/bin/sh\nmv $PWD $PWD.away; {swap}; cd ..\n").error)
    assert "moved or removed, and cannot be put back" in error
    there = elsewhere if elsewhere.is_dir() else project_folder
    assert [path.name for path in there.iterdir()] == [".gitignore"]
    assert (there / ".gitignore").read_text() == "theirs\n"


@pytest.mark.parametrize("exists", [True, False])
def test_hooks_outside_the_project_are_watched_and_never_written(build, project_folder, tmp_path, exists):
    hooks = tmp_path / "everybodys" / "hooks"
    if exists:
        hooks.mkdir(parents=True)
        (hooks / "pre-commit").write_text("theirs\n")
    subprocess.run(["git", "config", "core.hooksPath", hooks], cwd=project_folder, check=True)
    assert build("#!/bin/sh\nexit 0\n").error is None
    built = build(f"#!/bin/sh\nmkdir -p {hooks}; echo x > {hooks}/pre-commit; echo x > {hooks}/post-commit\n")
    assert f"{hooks}{'/pre-commit (changed' if exists else ' (new'}, and cannot be put back: it is out" in str(
        built.error
    )
    assert {path.name: path.read_text() for path in hooks.iterdir()} == {"pre-commit": "x\n", "post-commit": "x\n"}


@pytest.mark.parametrize("mode", ["off", "guard", "strict"])
@pytest.mark.parametrize("exists", [True, False])
def test_hooks_that_a_link_leads_to_are_watched_where_they_are(build, request, project_folder, mode, exists):
    if mode != "off":
        request.getfixturevalue("needs_bwrap")
    shutil.move(project_folder / ".git" / "hooks", project_folder / "hooks" if exists else project_folder.parent)
    (project_folder / ".git" / "hooks").symlink_to("../hooks")
    built = build("#!/bin/sh\nmkdir -p hooks\necho x > hooks/post-checkout\n", mode=mode)
    new = "hooks/post-checkout (new)" if exists else "hooks (new)"
    assert new in str(built.error) if mode == "off" else built.error is None
    assert not (project_folder / "hooks" / "post-checkout").exists()


@pytest.mark.parametrize("mode", ["off", "guard"])
def test_a_submodule_is_updated_where_it_is_initialised_and_else_told(build, request, project_folder, tmp_path, mode):
    if mode != "off":
        request.getfixturevalue("needs_bwrap")
    subprocess.run(["git", "clone", "-q", project_folder, tmp_path / "dep"], check=True)
    git = ["git", "-c", "protocol.file.allow=always"]
    subprocess.run([*git, "submodule", "--quiet", "add", tmp_path / "dep", "dep"], cwd=project_folder, check=True)
    subprocess.run(["git", "commit", "-qm", "dep"], cwd=project_folder, check=True)
    update = "git -c protocol.file.allow=always submodule --quiet update"
    script = f"#!/bin/sh\nset -e\nrm dep/ok.txt; {update} --force; {update} --init; git -C dep checkout -q HEAD^0; cat dep/ok.txt\n"
    built = build(script, mode=mode)
    assert built.error is None, built.error
    assert (built.result.exit_code, built.output) == (0, "not yet\n")
    subprocess.run(["git", "submodule", "--quiet", "deinit", "-f", "dep"], cwd=project_folder, check=True)
    built = build(f"#!/bin/sh\n{update} --init\n", mode=mode)
    if mode == "off":
        assert "dep/.git (new; run git submodule update --init before the run)" in str(built.error)
    else:
        assert built.result.exit_code != 0  # git cannot write .git/config, and says so
    assert not (project_folder / "dep" / ".git").exists()


def test_a_hard_link_to_the_tool_itself_changes_nothing_of_it(build, full_project, monkeypatch):
    monkeypatch.setattr(sys, "prefix", str(full_project / ".venv"))
    (full_project / ".venv").mkdir()
    (full_project / ".venv" / "a.py").write_text("a")
    assert build("#!/bin/sh\nln .venv/a.py link\n").error is None
    assert ".venv/a.py (of code-commit itself, changed" in str(build("#!/bin/sh\necho b > .venv/a.py\n").error)


@pytest.mark.parametrize("template", ["--template=", "-q"])
def test_what_a_build_leaves_running_in_guard_cannot_add_hooks_or_attributes_later(
    build, needs_bwrap, tmp_path, project_folder, template, mark
):
    shutil.rmtree(project_folder / ".git")
    subprocess.run(["git", "init", "-q", template], cwd=project_folder, check=True)
    later = (
        "touch begun; sleep 0.5; mkdir -p .git/hooks .git/info; mv .git/info .git/i; mv .git/hooks .git/h; mkdir .git/info .git/hooks;"
        "echo x > .git/hooks/pre-commit; echo x > .git/info/attributes; echo x > .git/config; touch done"
    )
    begun = "until [ -e begun ]; do sleep 0.01; done"  # else the hangup comes before the session of its own
    built = build(f"#!/bin/sh\nsetsid sh -c '{later}' > /dev/null 2>&1 &\n{begun}\n", mode="guard")
    assert built.error is None, built.error
    wait_for((project_folder / "done").exists)
    assert not (project_folder / ".git" / "hooks" / "pre-commit").exists()
    assert not (project_folder / ".git" / "info" / "attributes").exists()
    assert (project_folder / ".git" / "config").read_text() != "x\n"


BETWEEN = {
    # what is done between two builds: the path that the message names
    "printf 'exit 0' > build.sh": "build.sh (changed)",
    "echo x > .git/hooks/post-commit": ".git/hooks/post-commit (new)",
    "git config core.fsmonitor ./evil": ".git/config (changed)",
    "echo '* -diff' > .git/info/attributes": ".git/info/attributes (new)",
    "rm -r docs; ln -s /etc docs": "docs/UserSpecification.md (removed, and cannot be put back",
    "rm build.sh; mkfifo build.sh": "build.sh (changed)",
}


@pytest.mark.parametrize("change", BETWEEN)
def test_what_changes_between_two_builds_is_found_before_the_second(full_project, change):
    (full_project / "build.sh").write_text("#!/bin/sh\nexit 1\n")
    (full_project / "agent-config" / "logs").mkdir()
    with Builder(find_project(full_project)) as builder:
        assert builder.run(len, timeout=0, environment=dict(os.environ)).exit_code == 1
        (full_project / "agent-config" / "logs" / "new").touch()
        (full_project / "ok.txt").write_text("ok\n")
        assert builder.run(len, timeout=0, environment=dict(os.environ)).exit_code == 1
        subprocess.run(["sh", "-c", change], cwd=full_project, check=True)
        with pytest.raises(BuildError) as caught:
            builder.run(lambda _: pytest.fail("it was built"), timeout=0, environment=dict(os.environ))
    assert "a process of the last build, or another program, changed protected files" in str(caught.value)
    assert BETWEEN[change] in str(caught.value)
    assert (full_project / "build.sh").read_text() == "#!/bin/sh\nexit 1\n"


def test_descriptors_are_given_back(full_project):
    before = open_files()
    for _ in range(3):
        with Builder(find_project(full_project)) as builder:
            builder.run(len, timeout=0, environment=dict(os.environ))
    assert open_files() - before == set()


@pytest.mark.parametrize("mode", ["off", "guard"])
def test_a_repository_that_a_build_adds_to_the_index_is_taken(build, request, project_folder, mode):
    if mode != "off":
        request.getfixturevalue("needs_bwrap")
    script = "git init -q 'my dep'; echo x > 'my dep/file'; "
    assert build(f"#!/bin/sh\n{script}exit 0\n", mode=mode).error is None
    gitlink = 'git update-index --add --cacheinfo "160000,$(git rev-parse HEAD),my dep"'
    error = str(build(f"#!/bin/sh\n{script}{gitlink}\n", mode=mode).error)
    assert "my dep (a repository in git's index, and cannot be put back: git rm --cached 'my dep')" in error
    assert [path.name for path in (project_folder / "my dep").iterdir()] == ["file"]
    (kept,) = project_folder.glob("agent-config/changed-by-build/*/1-my dep_.git/HEAD")
    assert f"kept in {kept.parents[1].relative_to(project_folder)};" in error
    assert build("#!/bin/sh\nexit 0\n", mode=mode).error is None


@pytest.mark.parametrize("name", [".gitignore", "codeRollup.sh", "LLMInstructions.md", "UserSpecification.md"])
def test_a_protected_file_that_the_build_makes_is_removed(build, project_folder, name):
    (project_folder / name).unlink(missing_ok=True)
    for script in (f"echo x > {name}", f"mkdir -p {name}/x", f"ln -s /etc/passwd {name}", f"mkfifo {name}"):
        assert f"{name} (new)" in str(build(f"#!/bin/sh\n{script}\n").error)
        assert not os.path.lexists(project_folder / name)


@pytest.mark.parametrize(
    "script",
    [
        "touch .gitignore build.sh .git/config .git/hooks agent-config/query.txt",
        "cp -p .gitignore x; mv x .gitignore",
        "cp -p build.sh x; mv x build.sh",
        "git status; git add -A; git -c user.name=t -c user.email=e commit -qm x; git gc -q",
        "echo x > Cargo.lock; mkdir -p target; echo x > target/out; echo x > new.txt; rm ok.txt",
        "mkdir -p agent-config/logs/run; echo x > agent-config/logs/run/1-build.txt",
        "mkdir -p scripts; echo x > scripts/build.sh",
        "exit 1",
    ],
)
def test_what_is_not_protected_may_change(build, full_project, script):
    (full_project / "agent-config" / "logs").mkdir()
    built = build(f"#!/bin/sh\n{script}\n")
    assert built.error is None, built.error


def test_a_large_rollup_comes_back(build, project_folder, whole):
    rollup = project_folder / "agent-config" / "codeRollup.txt"
    content = os.urandom(1000) * (50_000 if whole else 5_000)
    rollup.write_bytes(content)
    rollup.chmod(0o600)
    for script in (
        "rm {}",
        "echo x >> {}",
        "truncate -s 10 {}",
        "printf x | dd of={} bs=1 seek=5 conv=notrunc status=none",
    ):
        built = build(f"#!/bin/sh\n{script.format('agent-config/codeRollup.txt')}\n")
        assert "agent-config/codeRollup.txt" in str(built.error)
        assert rollup.read_bytes() == content
        assert stat.S_IMODE(rollup.stat().st_mode) == 0o600


def test_logs_are_not_read(build, project_folder):
    logs = project_folder / "agent-config" / "logs"
    logs.mkdir()
    with (logs / "old").open("wb") as file:
        file.truncate(10_000_000_000)  # would take seconds, and all of the disk
    assert least(lambda: build("#!/bin/sh\nexit 0\n").seconds, 1) < 1


KEPT = {
    # script: {path: content that is kept}
    "echo mine >> .gitignore": {"1-.gitignore": "/agent-config\n/target\nmine\n"},
    "echo mine > build.sh": {"1-build.sh": "mine\n"},
    "printf mine > f; mv f build.sh": {"1-build.sh": "mine"},
    "echo mine > UserSpecification.md": {"1-UserSpecification.md": "mine\n"},
    "rm .gitignore; mkdir .gitignore; echo mine > .gitignore/x": {"1-.gitignore/x": "mine\n"},
    "echo mine > .git/hooks/post-checkout": {"1-.git_hooks_post-checkout": "mine\n"},
    "printf mine > .git/config": {"1-.git_config": "mine"},
    "rm -r agent-config; echo mine > agent-config": {"1-agent-config": "mine\n"},
    "mv agent-config x; mkdir agent-config; echo mine > agent-config/query.txt; echo mine2 > x/query.txt": {
        "1-agent-config/query.txt": "mine\n",
        "1-agent-config_query.txt": "mine2\n",
    },
    "mv .git x; mkdir .git; echo mine > .git/HEAD": {"1-.git/HEAD": "mine\n"},
}


@pytest.mark.parametrize("script", KEPT)
def test_what_is_replaced_or_removed_is_kept(build, project_folder, script):
    error = str(build(f"#!/bin/sh\n{script}\n").error)
    folders = [*project_folder.glob("agent-config/changed-by-build/*"), *project_folder.glob(".changed-by-build-*")]
    assert all(f"{folder.relative_to(project_folder)}" in error for folder in folders)
    assert "it was put back" in error
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}
    kept = {
        str(path.relative_to(folder)): path.read_text()
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file()
    }
    assert kept == KEPT[script]
    assert build("#!/bin/sh\nexit 0\n").error is None
    for folder in folders:
        shutil.rmtree(folder)
    assert not list(project_folder.rglob("*changed-by-build-*"))


def test_what_is_kept_does_not_go_through_a_planted_link(build, project_folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    link = f"ln -s {tmp_path}/elsewhere agent-config/changed-by-build"
    error = str(build(f"#!/bin/sh\n{link}; echo x >> .gitignore\n").error)
    assert "agent-config/changed-by-build (new)" in error
    assert not list((tmp_path / "elsewhere").iterdir())
    assert not (project_folder / "agent-config" / "changed-by-build").is_symlink()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("mv agent-config/logs {0}/x; ln -s {0}/x agent-config/logs", "agent-config/logs (changed, and cannot"),
        ("mv agent-config/logs agent-config/x", "agent-config/logs (removed)"),
        ("mv agent-config x; mkdir agent-config", "agent-config (changed);"),
        ("mv agent-config x; mkdir -m 700 agent-config", "agent-config (changed);"),
        ("mv agent-config/logs {0}/x; ln -s {0} agent-config/logs", "agent-config/logs (changed, and cannot"),
        ("mv agent-config/logs {0}/x; mkdir agent-config/logs", "agent-config/logs (changed, and cannot"),
    ],
)
def test_the_logs_cannot_be_swapped(build, project_folder, tmp_path, script, message):
    logs = project_folder / "agent-config" / "logs"
    logs.mkdir()
    (logs / "old").write_text("old")
    error = str(build(f"#!/bin/sh\n{script.format(tmp_path)}\nexit 0\n").error)
    assert message in error
    assert not logs.is_symlink()
    is_lost = "cannot be put back" in error
    assert (tmp_path / "x" / "old" if is_lost else logs / "old").read_text() == "old"
    assert ("not all of it could be put back" in error) is is_lost


def test_logs_that_the_build_makes_are_no_link(build, project_folder, tmp_path):
    assert "agent-config/logs (new)" in str(build(f"#!/bin/sh\nln -s {tmp_path} agent-config/logs\n").error)
    assert not os.path.lexists(project_folder / "agent-config" / "logs")


@pytest.mark.parametrize("mode", ["off", "guard"])
@pytest.mark.parametrize("name", ["", "/objects", "/refs"])
def test_a_repository_that_is_removed_is_told(build, request, mode, name):
    if mode != "off":
        request.getfixturevalue("needs_bwrap")
    error = build(f"#!/bin/sh\nrm -rf .git{name} 2>/dev/null\nexit 0\n", mode=mode).error
    assert isinstance(error, BuildError)
    named = name or ("" if mode == "off" else "/objects")
    assert f".git{named} (removed, and cannot be put back" in str(error)
    assert "it was put back" not in str(error)


@pytest.mark.parametrize("mode", ["off", "guard"])
@pytest.mark.parametrize("damage", ["rm .git/HEAD", "echo x > .git/HEAD", "rm .git/HEAD; mkfifo .git/HEAD"])
def test_a_head_that_git_would_not_take_is_put_back(build, request, project_folder, mode, damage):
    if mode != "off":
        request.getfixturevalue("needs_bwrap")
    before = (project_folder / ".git" / "HEAD").read_bytes()
    assert "it was put back: .git/HEAD (" in str(build(f"#!/bin/sh\n{damage}\n", mode=mode).error)
    assert (project_folder / ".git" / "HEAD").read_bytes() == before


@pytest.mark.parametrize(
    "done", ["git checkout -qb other", "git checkout -q --detach", "git pack-refs --all; git gc -q"]
)
def test_a_head_that_is_another_one_is_the_builds_own_business(build, project_folder, done):
    assert build(f"#!/bin/sh\nset -e\n{done}\n").error is None


def test_an_interrupted_build_is_undone_too(project_folder):
    (project_folder / "build.sh").write_text("#!/bin/sh\necho x >> .gitignore\necho ready\nsleep 60\n")
    warnings = []

    def stop(_):
        raise Interrupted(signal.SIGTERM)

    with pytest.raises(Interrupted):
        run_build(find_project(project_folder), stop, timeout=0, environment=dict(os.environ), warn=warnings.append)
    assert (project_folder / ".gitignore").read_text() == "/agent-config\n/target\n"
    assert ".gitignore (changed)" in warnings[0]


def test_a_build_that_timed_out_is_undone_too(build, project_folder):
    built = build("#!/bin/sh\necho x >> .gitignore\nsleep 60\n", timeout=0.3)
    assert ".gitignore (changed)" in str(built.error)
    assert (project_folder / ".gitignore").read_text() == "/agent-config\n/target\n"


def test_a_project_below_or_outside_a_repository_is_watched(build, project_folder, tmp_path):
    inner = project_folder / "inner"
    (inner / "agent-config").mkdir(parents=True)
    (inner / "build.sh").write_text("#!/bin/sh\ngit config a.b c\n")
    (inner / "build.sh").chmod(0o755)
    with pytest.raises(BuildError, match=r"\.git/config \(changed\)"):
        run_build(find_project(inner), len, timeout=0, environment=dict(os.environ))
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "build.sh").write_text("#!/bin/sh\necho x > LLMInstructions.md\n")
    (plain / "build.sh").chmod(0o755)
    with pytest.raises(BuildError, match=r"LLMInstructions.md \(new\)"):
        run_build(find_project(plain), len, timeout=0, environment=dict(os.environ))


def test_a_work_tree_whose_git_is_a_file_is_watched(build, project_folder, tmp_path):
    subprocess.run(["git", "worktree", "add", "-q", tmp_path / "tree"], cwd=project_folder, check=True)
    tree = tmp_path / "tree"
    (tree / "build.sh").write_text("#!/bin/sh\necho gitdir: /tmp/evil > .git\n")
    (tree / "build.sh").chmod(0o755)
    content = (tree / ".git").read_text()
    with pytest.raises(BuildError, match=r"\.git \(changed\)"):
        run_build(find_project(tree), len, timeout=0, environment=dict(os.environ))
    assert (tree / ".git").read_text() == content


@pytest.mark.slow
def test_folders_beyond_the_limit_are_left_as_they_are(tmp_path):
    for name in ("a/full", "b/full"):
        (tmp_path / name).mkdir(parents=True)
        for number in range(MOST_ENTRIES):
            (tmp_path / name / str(number)).touch()
    assert (
        Fingerprints(tmp_path, [tmp_path / "a", tmp_path / "b"]).put_back(
            Quarantine(tmp_path, tmp_path / "agent-config")
        )
        == {}
    )


def test_each_damage_tells_what_was_done_and_whether_it_is_undone(tmp_path):
    for name in ("changed", "outside", "removed"):
        (tmp_path / name).write_text("as it was\n")
    paths = [tmp_path / name for name in ("changed", "new", "outside", "removed")]
    before = Fingerprints(tmp_path, paths, only_told=[tmp_path / "outside"])
    for name in ("changed", "new", "outside"):
        (tmp_path / name).write_text("by the build\n")
    (tmp_path / "removed").unlink()
    outside = Damage("changed", is_undone=False, detail="it is outside the project")
    damages = dict(zip(paths, [Damage("changed"), Damage("new"), outside, Damage("removed")], strict=True))
    assert before.put_back(Quarantine(tmp_path, tmp_path / "agent-config")) == damages
    assert str(outside) == "changed, and cannot be put back: it is outside the project"
    assert str(Damage("new", detail="look")) == "new; look"


def test_unchanged_files_cost_little(full_project):
    paths = [full_project / name for name in (".gitignore", ".git/hooks", ".git/config", "agent-config")]

    def look() -> None:
        assert Fingerprints(full_project, paths).put_back(Quarantine(full_project, full_project / "agent-config")) == {}

    assert least(lambda: cpu_seconds(look), 0.02) < 0.02
