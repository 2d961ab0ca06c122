"""The codebase of a run: as it stands, all files, fitted, or chosen; and the checks of its first prompt."""

from functools import partial

from code_commit.changes import RunWarning
from code_commit.check.plan import Check, Report, RunInputs, RunPlan
from code_commit.codebase.freshness import find_differences
from code_commit.codebase.make import Choose, make_codebase
from code_commit.codebase.select import CodebaseRequest
from code_commit.codebase.text import Codebase
from code_commit.errors import Named, NotSetUpError
from code_commit.exchange import Prompt
from code_commit.git import UnansweredError
from code_commit.llm.models import SMALLER_PROMPTS, UNLIMITED, context_window, explain_misfit, longest_prompt
from code_commit.llm.money import price_of, require_money
from code_commit.llm.vendor import LlmConfig, estimate_tokens
from code_commit.project import ROLLUP_SCRIPT, Project
from code_commit.prompts.layout import lay_out, load_system_prompts, make_task
from code_commit.redaction import Redactor
from code_commit.runs.words import count, listed
from code_commit.settings import Settings

_MOST_NAMED = 10
_REMAINING = 0  # as `fit` of a request: all tokens that the model leaves beside the answer
BY_NUMBER = (
    "run code-commit rollup --fit 100000 (or another number of tokens), then use ",
    Named("rollup", "file"),
)


def request_of(inputs: RunInputs, settings: Settings, query: str) -> CodebaseRequest | None:
    """Return the codebase that a run makes first, None where it takes the present one."""
    request = inputs.request
    takes_file = settings.rollup == "file" and not inputs.fresh
    if request is None and (inputs.command == "apply" or inputs.codebase or takes_file):
        return None
    if request is None:
        fit = _REMAINING if settings.rollup in ("fit", "select") else None
        request = CodebaseRequest(fit=fit, select=settings.rollup == "select")
    if request.fit is None and not request.select:
        return request
    return request._replace(query=request.query or query, edits=settings.answer_format != "files")


def needs_room(request: CodebaseRequest | None) -> bool:
    """Tell whether the model decides how many tokens the codebase may have."""
    return request is not None and not request.fit and (request.fit is not None or request.select)


def with_room(project: Project, llm: LlmConfig, request: CodebaseRequest) -> CodebaseRequest:
    """Return the request with the tokens that the model leaves for the codebase.

    They are the model's window less its answer, the rest of the prompt, and a repair's additions: the build's output
    and the changed files. Raises NotSetUpError where the window is unknown.
    """
    longest, room = _room(project, llm, request)
    if not longest:
        raise NotSetUpError(
            f"the context window of {llm.choice} is unknown: set context_window in config.toml, or ", *BY_NUMBER
        )
    if room <= 0 and not request.select:
        window = context_window(llm.choice, llm.settings) or longest
        told = f"the window of {window:,} tokens leaves no room for a file after the answer, the task and the system"
        ways = f"{SMALLER_PROMPTS} or " if llm.settings.prompt_layout != "short" else "lower max_output_tokens, or "
        raise NotSetUpError(f"{told} prompts: {ways}use a model with a larger one")
    return request._replace(fit=max(room, 1))


def _room(project: Project, llm: LlmConfig, request: CodebaseRequest) -> tuple[int, int]:
    """Return the tokens of the longest prompt, 0 where unknown, and those that it leaves for the codebase."""
    longest = longest_prompt(llm) or (UNLIMITED if request.select else 0)
    edits, prompts = llm.settings._replace(answer_format="edits"), load_system_prompts(project.system_prompts)
    prompt = lay_out(make_task(edits, prompts, request.query, Codebase([""])))
    repair = longest // 4 if llm.settings.max_repairs else 0
    return longest, longest - repair - estimate_tokens(prompt.text)


def codebase_for(plan: RunPlan, choose: Choose | None = None) -> Codebase:
    """Return the codebase of a run, made in memory where the plan has none. Raises NotSetUpError, and as `choose`."""
    if plan.request is None:
        if plan.codebase is None:
            raise NotSetUpError("there is no codebase: code-commit rollup writes one")
        return plan.codebase
    return make_codebase(plan.project, plan.settings.rollup_exclude, plan.request, plan.redactor, choose)


def codebase_warnings(plan: RunPlan, codebase: Codebase) -> list[RunWarning]:
    """Return the warnings of a codebase that was not made for this run, as the files may have changed since."""
    if plan.request is not None or plan.inputs.codebase is not None:
        return []
    project, settings = plan.project, plan.settings
    try:
        found = find_differences(project, codebase, settings.rollup_exclude, plan.redactor)
    except (UnansweredError, NotSetUpError) as error:
        return [RunWarning("codebase", f"the age of codeRollup.txt is unknown: {error}")]
    gone = [f"{name} (now {path})" if path else name for name, path in found.gone.items()]
    told = {
        "changed since codeRollup.txt was written (the LLM sees the old text)": found.changed,
        "gone since codeRollup.txt was written (the LLM still sees them)": gone,
        "new since codeRollup.txt was written (the LLM does not see them)": found.new,
    }
    advice = f"run {ROLLUP_SCRIPT if project.has_own_rollup else 'code-commit rollup'}"
    messages = [f"{what}: {listed(names, _MOST_NAMED)}: {advice}" for what, names in told.items() if names]
    return [RunWarning("codebase", message) for message in messages]


def require_sendable(plan: RunPlan, codebase: Codebase, *, is_paid: bool = False) -> None:
    """Raise NotSetUpError unless the first prompt can be sent. Skip the check of its money if a choice `is_paid`."""
    report = Report(plan.redactor)
    check_prompt(report, plan, codebase, is_paid=is_paid)
    report.require_no_problem(plan.project)


def check_codebase(report: Report, plan: RunPlan) -> None:
    """Check the codebase of a run, as far as that goes without the choice of an LLM."""
    if plan.codebase:
        report.warnings += codebase_warnings(plan, plan.codebase)
    elif plan.request and (
        codebase := report.ask(
            "codeRollup.txt",
            lambda: codebase_for(plan),
            lambda made: f"{count(made.bytes, 'byte')}, rewritten by each run",
        )
    ):
        check_prompt(report, plan, codebase)


def check_prompt(report: Report, plan: RunPlan, codebase: Codebase, *, is_paid: bool = False) -> None:
    """Check the first prompt of a run with this codebase: that it holds no key, that it fits, and its cost."""
    prompt = lay_out(plan.task(codebase))
    report.ask("prompt", lambda: require_no_key(report.redactor, prompt), lambda _: size_of(prompt.text))
    if plan.asked is None:
        return
    llms = [llm for llm in (plan.asked, plan.asked.fallback) if llm]
    room = partial(_room, plan.project, plan.asked, CodebaseRequest(query=plan.query))
    explain = partial(explain_misfit, prompt=prompt, can_be_fitted=lambda: room()[1] > 0)
    misfits = [misfit for llm in llms if (misfit := explain(llm.choice, llm.settings))]
    networked = [llm for llm in llms if llm.choice.provider != "replay"]
    unknown = [llm for llm in networked if context_window(llm.choice, llm.settings) is None]
    has_price = price_of(plan.asked.choice, plan.asked.settings) is not None
    if plan.asked in networked and has_price and plan.settings.max_cost and not (is_paid or plan.inputs.resumes_run):
        report.ask("max cost", partial(require_money, plan.asked.choice, plan.asked.settings, prompt), str)
    if misfits or not unknown:
        report.checks.append(Check("prompt fits", "\n".join(misfits) or None))
    else:
        names = " and ".join(str(llm.choice) for llm in unknown)
        report.warn(
            f"the context window of {names} is unknown, so the prompt may not fit: set context_window in config.toml"
        )


def require_no_key(redactor: Redactor, prompt: Prompt) -> None:
    """Raise NotSetUpError where the prompt would carry an API key."""
    if redactor.reveals_key(prompt.text):
        raise NotSetUpError(
            "the prompt would contain an API key: remove it from the query, the rollup or your own system prompts"
        )


def size_of(text: str) -> str:
    return count(len(text.encode()), "byte")
