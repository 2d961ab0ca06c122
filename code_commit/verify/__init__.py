"""The verification pass: a response is checked whole before any file is modified; one violation rejects all of it.

Rules by name, each in the module that owns it: `outside unclear-path windows-name too-long` (paths), `protected`
(protected), `link not-a-file other-file-system other-repository unreadable` (tree), `hidden` (repositories),
`same-file` (twins), `ignored` (ignored), `not-allowed protected-by-option` (below), `not-text placeholder missing
holds-key markdown` (content), `stale` (rollup).
"""

from collections.abc import Iterator, Sequence

from code_commit.changes import (
    FileChange,
    FileReplacement,
    OriginalFile,
    VerifiedChange,
    VerifiedChanges,
)
from code_commit.errors import ApplyError
from code_commit.project import Project
from code_commit.redaction import Redactor
from code_commit.terminal import shown
from code_commit.verify.cautions import find_cautions
from code_commit.verify.content import find_content_fault, read_umask, verified_change
from code_commit.verify.findings import Findings
from code_commit.verify.ignored import find_ignored, match_patterns
from code_commit.verify.paths import find_path_fault, read_limits
from code_commit.verify.protected import RULE as PROTECTED_RULE
from code_commit.verify.protected import find_protected, guarded_folders
from code_commit.verify.repositories import find_bare_repositories, find_hidden
from code_commit.verify.rollup import find_unseen
from code_commit.verify.rules import Rules, capture_rules, ignored_paths
from code_commit.verify.tree import look_at_targets
from code_commit.verify.twins import find_folder_twins, find_near_names, find_twins

__all__ = ["Rules", "capture_rules", "ignored_paths", "verify_changes"]

_IGNORED = "git ignores it, the reviewer would not see it: put the file where .gitignore does not match"
_HIDDEN = (
    "git hides changes of it (its index says skip-worktree or assume-unchanged, or holds one of its folders as a file),"
    " the reviewer would not see them: leave it, or put the file elsewhere"
)
_STALE = "the code rollup does not hold it as it is now: leave it as it is, or ask for a new rollup"


def verify_changes(changes: Sequence[FileChange], project: Project, rules: Rules) -> VerifiedChanges:
    """Check every change against every rule and return them as they may be applied.

    Raises RejectedResponseError with all violations; ApplyError where the project cannot be looked at.
    """
    findings = Findings(list(dict.fromkeys(changes)))
    _check_paths(findings, project, rules.redactor)
    originals = _check_tree(findings, project, rules)
    _check_git(findings, originals, project, rules)
    verified = _check_content(findings, originals, rules)
    warnings = [*find_cautions(verified), *_near_names(verified, project), *_check_rollup(findings, verified, rules)]
    findings.reasons.reject()
    rules.written.update((change.path, hash(change.content)) for change in verified)
    return VerifiedChanges(project.root, tuple(verified), tuple(warnings))


def _check_paths(findings: Findings, project: Project, redactor: Redactor) -> None:
    limits, guarded = read_limits(project.root), guarded_folders(project)
    keys_around = redactor.reveals_key("\n".join(findings.open_paths))
    for change in findings.changes:
        fault = find_path_fault(change.path, limits)
        if keys_around and redactor.reveals_key(change.path):
            fault = "holds-key", "the path holds an API key: choose another name"
        if fault:
            findings.close(change.path, *fault)
            continue
        protected = find_protected(change.path, guarded)
        if protected:
            findings.close(change.path, PROTECTED_RULE, protected)
    _check_set(findings, project)


def _check_set(findings: Findings, project: Project) -> None:
    """Check what no single path shows."""
    for path, twin in find_twins(findings.open_paths):
        message = f"is the same file as {shown(twin)}, or lies below it, on some file systems: choose one spelling"
        findings.add(path, "same-file", message)
    for path, twin in find_folder_twins(findings.open_paths):
        findings.add(path, "same-file", f"spells a folder otherwise than {shown(twin)}: choose one spelling")
    written = [change.path for change in findings.open if isinstance(change, FileReplacement)]
    for path, folder in find_bare_repositories(written, project.root):
        message = f"makes {shown(folder) or 'the root'} look like a bare git repository: choose another name"
        findings.add(path, "other-repository", message)


def _check_tree(findings: Findings, project: Project, rules: Rules) -> dict[str, OriginalFile | None]:
    try:
        originals, faults = look_at_targets(findings.open_paths, project, guarded_folders(project), rules.submodules)
    except OSError as error:
        raise ApplyError(f"{project.root} cannot be looked at, nothing was changed: {error.strerror}") from error
    for path, fault in faults.items():
        findings.close(path, *fault)
    return originals


def _check_git(findings: Findings, originals: dict[str, OriginalFile | None], project: Project, rules: Rules) -> None:
    paths = findings.open_paths
    findings.ask("ignored", _IGNORED, lambda: find_ignored(paths, project, rules.ignore_memory))
    findings.ask("hidden", _HIDDEN, lambda: find_hidden(originals.keys(), project))
    if rules.protect and paths:
        message = "is protected by --protect: leave it as it is"
        findings.ask("protected-by-option", message, lambda: match_patterns(rules.protect, paths, any_case=True))
    if rules.allow and paths:
        allowed = ", ".join(map(shown, rules.allow))
        message = f"only these may be changed: {allowed}; make the change there"
        findings.ask("not-allowed", message, lambda: set(paths) - match_patterns(rules.allow, paths, any_case=False))


def _check_content(findings: Findings, originals: dict[str, OriginalFile | None], rules: Rules) -> list[VerifiedChange]:
    verified = []
    umask = read_umask()
    for change in findings.open:
        original = originals[change.path]
        fault = find_content_fault(change, original, rules.redactor)
        if fault:
            findings.add(change.path, *fault[0], line=fault[1])
        else:
            verified.append(verified_change(change, original, umask))
    return verified


def _near_names(verified: Sequence[VerifiedChange], project: Project) -> Iterator[str]:
    created = [change.path for change in verified if change.action == "create"]
    for path, near in find_near_names(created, project.root):
        yield f"{shown(path)} and {shown(near)} are one name where case or Unicode form does not count: rename one"


def _check_rollup(findings: Findings, verified: Sequence[VerifiedChange], rules: Rules) -> Iterator[str]:
    """Yield a warning for each original that the LLM did not see; with --strict it is a violation."""
    if rules.codebase is None:
        return
    texts = {
        change.path: change.original.content.decode("utf-8", "surrogateescape")
        for change in verified
        if change.original is not None and rules.written.get(change.path) != hash(change.original.content)
    }
    for path in sorted(find_unseen(texts, rules.codebase)):
        if rules.strict:
            findings.add(path, "stale", _STALE)
        else:
            yield f"{shown(path)}: {_STALE.partition(':')[0]}, the LLM did not see what it changes"
