"""The verification pass: a response is checked whole before any file is modified; one violation rejects all of it.

The rules stand in the modules that own them, those for paths in the package `paths`. This one has `not-allowed`,
`protected-by-option`, `secret`, `whole-file` and `stale`.
"""

import functools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from code_commit.changes import (
    EditBlock,
    FileChange,
    FileRemoval,
    FileReplacement,
    OriginalFile,
    Reasons,
    RequestedChange,
    RunWarning,
    SuspicionRule,
    VerifiedChange,
    VerifiedChanges,
)
from code_commit.errors import ApplyError, NotSetUpError
from code_commit.files import decode_text
from code_commit.git import Index, UnansweredError, match_patterns
from code_commit.paths import names
from code_commit.paths.secrets import ENCRYPTING_FILTERS, explain_secret, is_secret_name
from code_commit.project import Project
from code_commit.redaction import Redactor
from code_commit.settings import Settings
from code_commit.terminal import shown
from code_commit.verify import ignored, new_paths, resemblance, tree
from code_commit.verify.again import find_damages
from code_commit.verify.content import (
    check_content,
    content_as_sent,
    loss_warnings,
    read_umask,
    settle_new_files,
    unlisted_warnings,
    verified_change,
)
from code_commit.verify.edits import STALE_PART, UNSEEN_PART, VisibleLines, find_repetition, find_shown
from code_commit.verify.formats import find_formats
from code_commit.verify.ignored import IgnoreFiles, ignored_paths
from code_commit.verify.markdown import without_fences
from code_commit.verify.omission import ChangedFile, find_omissions
from code_commit.verify.parts import Surroundings
from code_commit.verify.resemblance import NewFiles
from code_commit.views import Part, Removed, Sight, Span, Whole, find_unseen, of_kind

__all__ = ["Rules", "capture_rules", "ignored_paths", "verify_changes"]
Originals = dict[str, OriginalFile | None]  # the content at each path before the change, None for a new file
_IGNORED = "git ignores it, the reviewer would not see it: put the file where .gitignore does not match"
_HIDDEN = (
    "git hides changes of it (its index says skip-worktree or assume-unchanged, or holds one of its folders as a file),"
    " the reviewer would not see them: leave it as it is, or put the file elsewhere"
)
_CONFIDENTIAL = (
    "is {}: leave its block out, and say outside the fences what it needs (the user can allow it with --allow and the"
    " path of the file itself, not just its folder)"
)
_WHOLE_FILE = "is sent as edits, which answer_format = 'files' does not accept: send the whole content of the file"
_UNSEEN = (
    "[codebase] shows at most an outline of it, a change could lose the rest: ask for the file with ^^^files first"
)
_CHANGED_SINCE = "has changed since it was shown, a change could lose that: ask for the file with ^^^files first"
_NOT_HELD = "the code rollup lacks it or shows another version of it"
_STALE = f"{_NOT_HELD}: leave it as it is"
_ENDS_ALONE = "the answer differs from it in line ends or the last newline alone"


@dataclass(slots=True)
class Rules:
    settings: Settings
    redactor: Redactor
    ignore_files: IgnoreFiles
    index: Index
    query: str  # "" if the task is unknown


def capture_rules(project: Project, settings: Settings, redactor: Redactor, query: str = "") -> Rules:
    """Return the rules for the whole run, read before anything is changed. Raises NotSetUpError."""
    match_patterns([*settings.allow, *settings.protect], [])  # one that cannot be read is told before anything is paid
    try:
        project.configuration()  # as it is before anything is changed
        ignore_files, index = ignored.remember_ignore_files(project), project.index()
    except (UnansweredError, OSError) as error:
        raise NotSetUpError(f"the ignore rules cannot be read: {error}") from error
    return Rules(settings, redactor, ignore_files, index, query)


class _Findings:
    """The changes of a response, their violations so far, and `shown_lines` of files that are shown in part."""

    def __init__(self, changes: Sequence[RequestedChange], reasons: Reasons) -> None:
        self.changes = changes
        self.reasons = reasons
        self._lines = {change.path: change.line for change in changes}
        self._closed: set[str] = set()
        self.shown_lines: dict[str, tuple[Span, ...]] = {}

    @property
    def open(self) -> list[RequestedChange]:
        return [change for change in self.changes if change.path not in self._closed]

    @property
    def open_paths(self) -> list[str]:
        return [change.path for change in self.open]

    @property
    def removed(self) -> set[str]:
        return {change.path for change in self.open if isinstance(change, FileRemoval)}

    def add(self, path: str, rule: str, message: str, line: int | None = None) -> None:
        where = self._lines.get(path, 0) if line is None else line
        self.reasons.add(path, where, rule, message)

    def suspect(self, path: str, rule: SuspicionRule, fact: str, advice: str, line: int | None = None) -> bool:
        where = self._lines.get(path, 0) if line is None else line
        return self.reasons.suspect(path, where, rule, fact, advice)

    def close(self, path: str, rule: str, message: str) -> None:
        """Add a violation after which nothing more can be said about the path."""
        self._closed.add(path)
        self.add(path, rule, message)

    def leave_out_copies(self, barred: Iterable[str], project: Project) -> set[str]:
        """Leave out the blocks of barred files that hold what the file holds, and return their paths."""
        sent = {change.path: change.content for change in self.open if isinstance(change, FileReplacement)}
        copies = {path for path in barred if path in sent and project.holds(path, sent[path])}
        self._closed |= copies
        self.reasons.leniences |= {"protected-copy"} if copies else set()
        return copies

    def ask(self, rule: str, message: str, question: Callable[[], Iterable[str]]) -> None:
        """Add the violation for each path that the question returns; for the whole response if git fails."""
        try:
            named = sorted(question())
        except UnansweredError as error:
            self.add("", rule, f"{error}; nothing can be written until the user has fixed this")
        except OSError as error:
            raise ApplyError(f"the response cannot be checked, nothing was changed: {error}") from error
        else:
            for path in named:
                self.add(path, rule, message)


def verify_changes(
    changes: Sequence[RequestedChange],
    project: Project,
    rules: Rules,
    sight: Sight | None,
    reasons: Reasons | None = None,
) -> VerifiedChanges:
    """Return the changes in the form to apply, checked against every rule. `sight` is None if it is unknown what the
    LLM saw. Raises RejectedResponseError with all violations, after `reasons`, and ApplyError.
    """
    findings = _Findings(list(dict.fromkeys(changes)), reasons or Reasons())
    _check_paths(findings, project, rules)
    originals = _check_tree(findings, project, rules)
    _check_new_paths(findings, originals, project, rules, sight)
    gone = findings.removed.union(of_kind(sight.views, Removed) if sight else ())
    _check_git(findings, originals, gone, project, rules)
    _check_secrets(findings, originals, project, rules, sight)
    stale = list(_check_seen(findings, originals, sight, strict=rules.settings.strict)) if sight else []
    surroundings = Surroundings(lambda path: (project.root / path).is_file() or path in originals, rules.query)
    verified = _check_content(findings, originals, rules, sight or Sight(), surroundings)
    findings.reasons.reject(rules.redactor.redact_quotations)
    try:
        verified = settle_new_files(verified, project)
    except UnansweredError as error:
        raise ApplyError(f"{error}; nothing was changed") from error
    created = [change.path for change in verified if change.original is None]
    losses = [*loss_warnings(findings.changes, verified), *unlisted_warnings(created, rules.index.files)]
    warnings = (*losses, *findings.reasons.warnings, *stale)
    return VerifiedChanges(project.root, tuple(verified), warnings, ends_alone=tuple(findings.reasons.left))


def _check_paths(findings: _Findings, project: Project, rules: Rules) -> None:
    redactor, tracked = rules.redactor, functools.cache(rules.index.names)
    limits, guarded = names.read_limits(project.root), names.guarded_folders(project)
    flood = names.find_flood((change.path for change in findings.changes), limits)
    if flood:
        findings.add("", *flood, line=0)
        findings.reasons.reject(redactor.redact_quotations)
    for change in findings.changes:
        fault = names.find_path_fault(change.path, limits, tracked)
        if redactor.reveals_key(change.path):
            fault = "holds-key", "the path contains an API key: choose another name"
        if fault:
            held = new_paths.find_held_path(change.path, project.root) if fault[0] == "unclear-path" else ""
            findings.close(change.path, fault[0], f"{fault[1]}{f'; write {shown(held)}' if held else ''}")
            continue
        protected = names.find_protected(change.path, guarded)
        if protected and not findings.leave_out_copies([change.path], project):
            findings.close(change.path, "protected", protected)
    written = [change.path for change in findings.open if not isinstance(change, FileRemoval)]
    staying = {*written}  # what is deleted may give way to a folder, or to its own name in another case
    for path, message in names.find_case_collisions(path for path in findings.open_paths if path in staying):
        findings.add(path, "same-file", message)
    for path, folder in tree.find_bare_repositories(written, project.root):
        message = f"makes {shown(folder) or 'the root'} look like a bare git repository: choose another name"
        findings.add(path, "other-repository", message)


def _check_tree(findings: _Findings, project: Project, rules: Rules) -> Originals:
    try:
        originals, faults = tree.look_at_targets(
            findings.open_paths, findings.removed, project, names.guarded_folders(project), rules.index.submodules
        )
    except OSError as error:
        raise ApplyError(f"{project.root} cannot be looked at, nothing was changed: {error.strerror}") from error
    for path, fault in faults.items():
        findings.close(path, *fault)
    return originals


def _check_new_paths(
    findings: _Findings, originals: Originals, project: Project, rules: Rules, sight: Sight | None
) -> None:
    """Reject new paths that are likely meant to be others."""
    removed = findings.removed
    for path in [path for path in findings.open_paths if originals[path] is None]:
        if fault := new_paths.find_invented_folder(path, project.root, removed):
            findings.close(path, *fault)
    new = [path for path in findings.open_paths if originals[path] is None]
    doubts = [*new_paths.find_misspelled(new, removed, project.root)]
    doubts += new_paths.find_decorated(set(new) - {doubt.path for doubt in doubts}, removed, project.root)
    files = {change.path: change.content for change in findings.open if isinstance(change, FileReplacement)}
    answered, tracked = {change.path for change in findings.changes}, rules.index.files
    created = NewFiles({path: files[path] for path in new if path in files}, answered, tracked, rules.query)
    doubts += [*resemblance.find_astray(created, project)]
    doubts += [*resemblance.find_copies(created, project)]
    doubts += resemblance.find_gone(new, sight.views, project, tracked) if sight else ()
    for doubt in doubts:
        if doubt.is_certain or doubt.path not in files:  # the literal reading of an edit or removal is no way
            findings.close(doubt.path, doubt.rule, f"{doubt.fact}: {doubt.advice}")
        else:
            findings.suspect(doubt.path, doubt.rule, doubt.fact, doubt.advice)


def _check_git(
    findings: _Findings, originals: Originals, gone: Collection[str], project: Project, rules: Rules
) -> None:
    """Ask git about the paths. `gone` are files that the answers of the run delete."""
    paths = findings.open_paths
    findings.ask("ignored", _IGNORED, lambda: ignored.find_ignored(paths, project, rules.ignore_files))
    findings.ask("hidden", _HIDDEN, lambda: ignored.find_hidden(originals.keys(), gone, project))
    message = "is protected by --protect: leave its block out, and say outside the fences what it needs"
    protected = match_patterns(rules.settings.protect, paths, any_case=True)
    others = set(paths) - match_patterns(rules.settings.allow, paths) if rules.settings.allow else set[str]()
    copies = findings.leave_out_copies(protected | others, project)
    findings.ask("protected-by-option", message, lambda: protected - copies)
    message = f"only these may be changed: {', '.join(map(shown, rules.settings.allow))}; make the change there"
    findings.ask("not-allowed", message, lambda: others - copies)


def _check_secrets(
    findings: _Findings, originals: Originals, project: Project, rules: Rules, sight: Sight | None
) -> None:
    """Reject every change of a secret that the LLM was not shown, and tell nothing else about the file."""
    shown_text = functools.cache(lambda: sight.text if sight else "")
    texts = {}
    for path in findings.open_paths:
        original = originals[path]
        texts[path] = original.content.decode("utf-8", "replace") if original else ""
        why = explain_secret(path, [texts[path]], shown_text)
        if why and not _is_named(path, rules.settings.allow):
            findings.close(path, "secret", _CONFIDENTIAL.format(why))

    def encrypted() -> list[str]:
        paths = project.git.filtered(findings.open_paths, ENCRYPTING_FILTERS) if project.git else []
        return [path for path in paths if texts[path] not in shown_text() and not _is_named(path, rules.settings.allow)]

    findings.ask("secret", _CONFIDENTIAL.format("encrypted in git"), encrypted)


def _is_named(path: str, allow: Sequence[str]) -> bool:
    """Tell whether a pattern names a secret, and not also its neighbour `other.other`, or by its content `other.py`."""
    folder, slash, name = path.rpartition("/")
    neighbour = folder + slash + re.sub(r"[^.]+", "other", name, count=0 if is_secret_name(path) else 1)
    return any(match_patterns([pattern], [path, neighbour]) == {path} for pattern in allow)


def _check_content(
    findings: _Findings, originals: Originals, rules: Rules, sight: Sight, surroundings: Surroundings
) -> list[VerifiedChange]:
    """Return the changes that pass. A file that the prompt showed as removed need not be removed again."""
    verified, taken = list[VerifiedChange](), dict[str, tuple[RequestedChange, FileChange]]()
    shown_lines = functools.cache(lambda: {line.rstrip(" \t\r").lstrip("\ufeff") for line in sight.text.split("\n")})
    umask = read_umask()
    for asked in findings.open:
        if isinstance(asked, EditBlock) and rules.settings.answer_format == "files":
            findings.add(asked.path, "whole-file", _WHOLE_FILE)
            continue
        original = originals[asked.path]
        if isinstance(asked, FileRemoval) and original is None and isinstance(sight.views.get(asked.path), Removed):
            continue
        change = _check_format(findings, asked, original, surroundings)
        visible = VisibleLines(findings.shown_lines.get(change.path), shown_lines)
        checked = check_content(change, original, rules.redactor, visible)
        if isinstance(checked, list):
            for line, rule, message in checked:
                findings.add(change.path, rule, message, line=line)
        else:
            if isinstance(change, EditBlock) and original is not None:
                repeated = find_repetition(change, decode_text(original.content), visible)
                if repeated:
                    findings.suspect(change.path, repeated.rule, repeated.fact, repeated.advice, repeated.line)
            written = verified_change(change, checked, original, umask)
            verified.append(_without_ends_alone(findings, change, checked, written))
            taken[change.path] = change, checked
    _check_omissions(findings, verified, taken)
    return verified


def _without_ends_alone(
    findings: _Findings, asked: RequestedChange, checked: FileChange, written: VerifiedChange
) -> VerifiedChange:
    """Return a change; if it has other ends than the file, and nothing else, as sent if that is meant."""
    original = written.original
    if isinstance(checked, FileReplacement) and original and written.content == original.content:
        sent = content_as_sent(asked, checked, original)
        if sent != original.content and not findings.reasons.leave(asked.path, "line-ends", _ENDS_ALONE):
            return written._replace(content=sent)
    return written


def _check_omissions(
    findings: _Findings,
    verified: Iterable[VerifiedChange],
    taken: Mapping[str, tuple[RequestedChange, FileChange]],
) -> None:
    """Suspect what stands in the place of code that is left out."""
    files = []
    for each in verified:
        change, content = taken[each.path]
        old = each.original and each.original.content.decode("utf-8", "replace")
        new = content.content if isinstance(content, FileReplacement) else None
        edits = change.edits if isinstance(change, EditBlock) and "\r" not in (old or "") else ()
        files.append(ChangedFile(each.path, old, new, edits))
    for place in find_omissions(files):
        change, content = taken[place.path]
        if isinstance(change, EditBlock) and not place.text:
            continue  # the find names all that it takes away
        if isinstance(change, EditBlock):
            text = place.text.lower()
            line = next((edit.line for edit in change.edits if text in edit.replacement.lower()), change.line)
            advice = "repeat the lines in the replacement, or take them out of the find too"
        else:
            line = content.line and content.line + 1 + place.at
            advice = "send the whole content of the file"
        lost = f"lines {place.first} to {place.last} of the file" if place.first else "lines that are left out"
        fact = f"'{shown(place.text)}' stands for {lost}" if place.text else f"is empty, without {lost}"
        advice += "" if place.text else ", or write ^^^delete in place of ^^^end to remove it"
        findings.suspect(place.path, "omission", fact, advice, line)


def _check_format(
    findings: _Findings, asked: RequestedChange, original: OriginalFile | None, surroundings: Surroundings
) -> RequestedChange:
    """Return the change without Markdown's fences around its texts, and add what is suspected of it as text."""
    try:
        old = None if original is None else decode_text(original.content)
    except ValueError:
        return asked
    change = without_fences(asked, old)
    for found in (*find_formats(change, old, surroundings), *find_damages(change, old)):
        if found.may_be_meant:
            findings.suspect(change.path, found.rule, found.fact, found.advice, found.line)
        else:
            findings.add(change.path, found.rule, f"{found.fact}: {found.advice}", found.line)
    return change


def _check_seen(findings: _Findings, originals: Originals, sight: Sight, *, strict: bool) -> Iterator[RunWarning]:
    """Yield a warning for each original that the LLM did not see; a violation with --strict, or a partial codebase."""
    contents = {path: original.content for path in findings.open_paths if (original := originals[path]) is not None}
    texts = {path: content.decode("utf-8", "surrogateescape") for path, content in contents.items()}
    edited = {change.path for change in findings.open if isinstance(change, EditBlock)}
    for path in sorted(find_unseen(texts, sight)):
        view = sight.views.get(path)
        if path in edited and sight.basis == "guessed":
            continue
        if isinstance(view, Part) and path not in edited:
            findings.close(path, "unseen", UNSEEN_PART)
        elif isinstance(view, Part):
            if (lines := find_shown(texts[path], view)) is None:
                findings.close(path, "stale", STALE_PART)
            else:
                findings.shown_lines[path] = tuple(lines)
        elif sight.is_partial:
            findings.close(path, "unseen", _CHANGED_SINCE if isinstance(view, Whole) else _UNSEEN)
        elif strict:
            findings.add(path, "stale", _STALE)
        else:
            yield RunWarning("unseen", f"{shown(path)}: {_NOT_HELD}, the LLM did not see what it changes", path)
