"""The protected files."""

from code_commit.paths.protected import PROTECTED


def test_the_protected_list_is_the_specifications_in_its_order():
    assert PROTECTED == (
        ".gitignore",
        "Cargo.lock",
        "build.sh",
        "codeRollup.sh",
        "LLMInstructions.md",
        "UserSpecification.md",
        ".git",
        "agent-config",
        "target",
    )
