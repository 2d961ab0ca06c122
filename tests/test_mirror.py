"""Where a reader finds the tests of a module: in the file of its name, or in the one that stands here."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE, TESTS = ROOT / "code_commit", ROOT / "tests"

ELSEWHERE = {
    "__init__.py": "test_api.py",
    "apply/journal.py": "apply/test_recover.py",
    "apply/plan.py": "apply/test_transaction.py",
    "build/__init__.py": "build/test_fingerprints.py",
    "changes.py": "parse/test_parse.py",
    "check/codebase.py": "commands/test_run.py",
    "codebase/excerpts.py": "codebase/test_fit.py",
    "codebase/grammars.py": "codebase/test_outline.py",
    "codebase/languages.py": "codebase/test_outline.py",
    "codebase/make.py": "commands/test_rollup.py",
    "codebase/patterns.py": "codebase/test_outline.py",
    "codebase/select.py": "commands/test_rollup.py",
    "codebase/syntax.py": "codebase/test_outline.py",
    "codebase/task.py": "codebase/test_rank.py",
    "commands/__init__.py": "test_help.py",
    "commands/apply.py": "commands/test_apply_and_undo.py",
    "commands/choosing.py": "codebase/test_chooser.py",
    "commands/descriptions.py": "commands/test_build_scripts.py",
    "commands/mcp_server.py": "commands/test_mcp.py",
    "commands/page/logged_run.py": "commands/page/test_page.py",
    "commands/project_files.py": "commands/test_build_scripts.py",
    "commands/results.py": "fleet/test_results.py",
    "commands/scripts.py": "commands/test_build_scripts.py",
    "commands/undo.py": "commands/test_apply_and_undo.py",
    "errors.py": "test_workflow.py",
    "exchange.py": "prompts/test_layout.py",
    "fleet/builds.py": "fleet/test_worker.py",
    "fleet/clone.py": "fleet/test_worker.py",
    "fleet/command.py": "fleet/test_fleet.py",
    "fleet/dask_worker.py": "fleet/test_cluster.py",
    "llm/__init__.py": "llm/test_answers.py",
    "llm/failures.py": "llm/test_http.py",
    "llm/gemini.py": "llm/test_requests.py",
    "llm/values.py": "llm/test_usage.py",
    "llm/words.py": "llm/test_refusals.py",
    "parse/fences.py": "parse/test_parse.py",
    "project.py": "check/test_plan.py",
    "runs/attempt_log.py": "runs/test_log.py",
    "runs/build_log.py": "build/test_process.py",
    "runs/list.py": "commands/test_log.py",
    "start.py": "test_workflow.py",
    "paths/escapes.py": "paths/test_secrets.py",
    "paths/random_values.py": "paths/test_secrets.py",
    "verify/__init__.py": "verify/test_content.py",
    "verify/escapes.py": "verify/test_formats.py",
    "verify/frames.py": "verify/test_formats.py",
    "verify/parts.py": "verify/test_formats.py",
}
"""The modules whose behaviour the tests of another file show, and that file."""


def has_code(module: Path) -> bool:
    """Tell whether a module does something: a docstring or a constant alone needs no test."""
    return any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in ast.parse(module.read_bytes()).body)


def own_test(module: Path) -> Path:
    folder = TESTS / module.parent.relative_to(PACKAGE)
    name = module.parent.name if module.stem == "__init__" else module.stem.strip("_")
    beside = folder.parent / f"test_{name}.py"
    return beside if module.stem == "__init__" and beside.exists() else folder / f"test_{name}.py"


def test_each_module_has_a_test_file_of_its_name():
    modules = [module for module in PACKAGE.rglob("*.py") if has_code(module)]
    without = {str(module.relative_to(PACKAGE)) for module in modules if not own_test(module).exists()}
    assert without == set(ELSEWHERE), "add the file, or a row; take out the row of a module that has one or is gone"
    assert all((TESTS / name).is_file() for name in ELSEWHERE.values())
