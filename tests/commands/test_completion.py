"""The completion scripts, loaded by the shells themselves."""

import shutil
import subprocess
from pathlib import Path

import pytest
from command import Run


def script(run_code_commit: Run, tmp_path: Path, shell: str) -> Path:
    done = run_code_commit(tmp_path, "completion", shell)
    assert done.returncode == 0, done.stderr
    (tmp_path / "completion").write_text(done.stdout)
    return tmp_path / "completion"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_one_of_its_shell(shell, run_code_commit: Run, tmp_path: Path):
    path = script(run_code_commit, tmp_path, shell)
    assert "rollup" in path.read_text()
    if shutil.which(shell):
        subprocess.run([shell, "-n", str(path)], check=True)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["code-commit", ""], {"apply", "undo", "rollup"}),
        (["code-commit", "apply", "--bu"], {"--build", "--build-timeout"}),
        (["code-commit", "diff", ""], {"latest", "2026-11-21-19-51-35-committing-code"}),
        (["code-commit", "undo", "2026"], {"2026-11-21-19-51-35-committing-code"}),
        (["code-commit", "apply", "comp"], {"completion"}),
        (["code-commit", "rollup", "agent"], {"agent-config"}),
        (["code-commit", "--query", "comp"], {"completion"}),
        (["code-commit", "-C", "agent"], {"agent-config"}),
        (["code-commit", "undo", "--path", "comp"], {"completion"}),
        (["code-commit", "fleet", "comp"], {"completion"}),
    ],
)
def test_bash_completes_commands_and_options(words, wanted, run_code_commit: Run, tmp_path: Path):
    path = script(run_code_commit, tmp_path, "bash")
    (tmp_path / "agent-config/logs/2026-11-21-19-51-35-committing-code").mkdir(parents=True)
    quoted = " ".join(f"'{word}'" for word in words)
    program = (
        f"source {path}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; "
        "_shtab_code_commit code-commit; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    done = subprocess.run(["bash", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert wanted <= {word.strip() for word in done.stdout.split("\n")}
