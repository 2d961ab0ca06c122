"""The known LLMs: choosing one, its address and its window. Nothing is sent."""

import re
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl

from code_commit.errors import Message, Named, NoKeyError, NotSetUpError
from code_commit.exchange import Prompt
from code_commit.llm import anthropic, chat, command, gemini, openai, replay
from code_commit.llm.endpoint import at
from code_commit.llm.proxies import is_this_machine
from code_commit.llm.vendor import LlmConfig, Model, ModelChoice, Vendor, estimate_tokens, max_output
from code_commit.project import AGENT_CONFIG
from code_commit.regex import regex
from code_commit.settings import COMMAND_LINE, SERVER, USER, Facet, Settings, did_you_mean, settings_for
from code_commit.terminal import shown

VENDORS: dict[str, Vendor] = {
    each.VENDOR.name: each.VENDOR for each in (gemini, openai, anthropic, chat, command, replay)
}
"""In the order in which keys are tried when no model is named."""

UNLIMITED = 10**12  # tokens of a model whose window is unknown
_BYTES_PER_TOKEN, _LARGEST_ROOM = 8, 1_000_000
_LOCAL_SERVERS = {"ollama": 11434, "lmstudio": 1234, "vllm": 8000, "llama.cpp": 8080}  # the default port of each
_A_SERVER = "http://127.0.0.1:11434/v1"
_URL = regex(
    r"(?P<address>(?P<scheme>https?)://(?P<host>\w(?:[\w-]*\w)?(?:\.\w(?:[\w-]*\w)?)*\.?|\[[0-9a-f:.]+\])(:(?P<port>\d{1,5}))?)(?P<path>/[^\x00-\x20\x7f?#\\]*)?"
    r"(?P<query>\?[^\x00-\x20\x7f#\\]+)?",
    re.ASCII | re.IGNORECASE,
)
_OF_KEYS = regex(r"(?i)key|token|secret|passw|credential|auth|^\??(sig|signature|code|pwd)$")


def choose_model(
    model: str, keys: Container[str] = (), unfit: Mapping[str, str] = {}, setting: str = "model"
) -> ModelChoice:
    """Return the LLM that `model` names, or the default one of the first provider that has a key.

    Raises NotSetUpError for an unknown name; without a name, also if there is no key or the first one is `unfit`, with
    the reason. `setting` is the one that names the model.
    """
    if not model:
        return _default_choice(keys, unfit)
    prefix, colon, name = model.partition(":")
    if named := VENDORS.get(prefix):
        if chosen := name if colon else named.default_model:
            return ModelChoice(prefix, chosen)
        way = Named(setting, named.sample or f"{prefix}:NAME")
        raise NotSetUpError(Named(setting, prefix), f" needs {named.names}: write ", way)
    for vendor in VENDORS.values():
        if vendor.bare_names and re.fullmatch(vendor.bare_names, model):
            return ModelChoice(vendor.name, model)
    start, slash, rest = model.partition("/")  # as other tools write it
    if slash and start in _LOCAL_SERVERS:
        prefix, name = start, rest
    if prefix in _LOCAL_SERVERS:
        server = Named(setting, shown(f"chat:{name or 'NAME'}"))
        at = Named("base_url", f"http://127.0.0.1:{_LOCAL_SERVERS[prefix]}/v1")
        raise NotSetUpError(f"there is no provider '{prefix}': use ", server, " ", at)
    known = [*VENDORS, *(name for vendor in VENDORS.values() for name in vendor.models)]
    hint = did_you_mean(prefix if colon else model, VENDORS if colon else known)
    if slash and start in VENDORS:
        hint = f"; did you mean '{shown(f'{start}:{rest}')}'?"
    names = ", ".join(f"{name}:" for name in VENDORS)
    if colon and re.fullmatch(r"\w[\w.-]*", prefix):
        server = Named(setting, shown(f"chat:{name}"))
        ways: Message = (": use ", server, " with ", Named("base_url"), f", or one of {names}")
        raise NotSetUpError(f"there is no provider '{shown(prefix)}'", *((hint,) if hint else ways))
    raise NotSetUpError(f"unknown model '{shown(model)}': put its provider in front of it (one of {names}){hint}")


def choose_fallback(choice: ModelChoice, settings: Settings) -> LlmConfig | None:
    """Return the LLM that takes over when the chosen one cannot be called, still without its key: at its own
    `base_url`, or at the chosen one's if the provider is the same. Raises NotSetUpError.
    """
    if not settings.fallback_model:
        return None
    fallback = choose_model(settings.fallback_model, setting="fallback_model")
    own = bound_base_url(settings, "fallback_")
    base_url = own or (bound_base_url(settings) if fallback.provider == choice.provider else "")
    if fallback.provider != choice.provider or base_url != bound_base_url(settings):
        settings = for_another_address(settings)
    settings = settings._replace(fallback_model="", base_url=base_url, context_window=None)
    return LlmConfig(fallback, None, settings, role="fallback")


def for_another_address(settings: Settings) -> Settings:
    """Return the settings of a fallback or a chooser at another address, without the way to the run's own."""
    reach = settings_for(Facet.REACH)
    sources = {
        source: {name: value for name, value in place.items() if name not in reach}
        if not (place.get("model") or place.get("base_url"))
        else place
        for source, place in settings.sources.items()
    }
    return settings._replace(sources=sources, **{name: Settings._field_defaults[name] for name in reach})


def warn_of_model(choice: ModelChoice) -> list[str]:
    """Return a warning if the model is unknown and its name resembles a known one, else []."""
    hint = "" if find_model(choice) else did_you_mean(choice.name, VENDORS[choice.provider].models, cutoff=0.85)
    return [f"this version does not know {shown(str(choice))}, or its price{hint}"] if hint else []


def _default_choice(keys: Container[str], unfit: Mapping[str, str]) -> ModelChoice:
    for vendor in VENDORS.values():
        if vendor.name in unfit:
            raise NoKeyError(unfit[vendor.name], provider=vendor.name)
        if vendor.name in keys and vendor.default_model:
            return ModelChoice(vendor.name, vendor.default_model)
        if vendor.name in keys:
            server = Named("model", "chat:NAME"), " ", Named("base_url", "URL")
            raise NotSetUpError("there is a key for chat:, but no model and no address: name both, such as ", *server)
    vendors = [vendor for vendor in VENDORS.values() if vendor.default_model]
    names = [f"{vendor.name}-key.txt" for vendor in vendors]
    variables = [vendor.key_variable for vendor in vendors]
    raise NoKeyError(
        f"no API key: write one into {AGENT_CONFIG}/{_one_of(names)} (mode 600), or set {_one_of(variables)};"
        " for any other server set ",
        Named("model", "chat:NAME"),
        " and ",
        Named("base_url", "URL"),
    )


def _one_of(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def check_base_url(choice: ModelChoice, settings: Settings, role: str = "") -> str:
    """Return the API's address with its version segment; "" for `replay`. Raises NotSetUpError.

    A key must not go to an arbitrary URL, nor to another provider's. `role` is the prefix of the options' names
    (`fallback`).
    """
    vendor, lead = VENDORS[choice.provider], f"{role}_" if role else ""
    if vendor.api is None:
        return ""
    if not settings.base_url:
        if not vendor.base_url:
            model, server = Named(f"{lead}model", f"{vendor.name}:"), Named(f"{lead}base_url")
            raise NotSetUpError(model, " needs ", server, f", such as {_A_SERVER}")
        return vendor.base_url
    owner, _, address = bound_base_url(settings).partition(":")
    if owner not in ("", *VENDORS):
        owner, address = choice.provider, settings.base_url
    if owner not in ("", choice.provider) and vendor.base_url and settings.source_of(f"{lead}base_url") == USER:
        return vendor.base_url  # the user's own is for the models of its provider alone
    url = _check_url(address, settings.allow_http, settings.origin(f"{lead}base_url")[0])
    if owner != choice.provider:
        raise NotSetUpError(*_explain_owner(choice, settings, owner, role))
    base = url.partition("?")[0]
    is_bare_host = base.count("/") == len("//")
    has_version = re.search(r"/v\d+[a-z0-9]*$", base) is not None
    if has_version or not vendor.base_url or not (vendor.adds_version_to_paths or is_bare_host):
        return url
    return at(url, f"/{vendor.base_url.rpartition('/')[2]}")


def bound_base_url(settings: Settings, role: str = "") -> str:
    """Return the base URL as `PROVIDER:URL`, "" if none is set; `role` is the prefix of its setting (`fallback_`).

    The provider is the one written before the URL, or that of the model that the same source names, else "". An option
    is for a model of `chat` wherever that is named: it has no other address. A program's URL is returned as it is.
    """
    name, model = f"{role}base_url", getattr(settings, f"{role}model")
    url, (_, given) = getattr(settings, name), settings.origin(name)
    if settings.source_of(name) == COMMAND_LINE and model.startswith(f"{chat.VENDOR.name}:"):
        given = {**given, f"{role}model": model}
    return bound_in({**given, name: url}, role) if url and given else str(url)


def bound_in(given: Mapping[str, Any], role: str = "") -> str:
    """Return the base URL that one source gives, as `bound_base_url` does. Raises NotSetUpError."""
    url, beside = given.get(f"{role}base_url", ""), given.get(f"{role}model")
    if url.partition(":")[0] in ("", *VENDORS):
        return str(url)
    return f"{choose_model(beside).provider if beside else ''}:{url}"


def names_address(given: Mapping[str, Any], role: str, choice: ModelChoice, settings: Settings, url: str) -> bool:
    """Tell whether the base URL that one source gives is this address of the model. Raises as `bound_in`."""
    address = bound_in(given, role)
    with suppress(NotSetUpError):
        own = settings._replace(base_url=address, sources={})
        return address.startswith(f"{choice.provider}:") and check_base_url(choice, own) == url
    return False


def _explain_owner(choice: ModelChoice, settings: Settings, owner: str, role: str) -> Message:
    lead = f"{role}_" if role and settings.fallback_base_url else ""
    where, of_role = settings.origin(f"{lead}base_url")[0], f"{role}_" if role else ""
    model = shown(str(choice))
    if owner:
        address = Named(f"{of_role}base_url", VENDORS[choice.provider].base_url or _A_SERVER)
        own = Named(f"{of_role}model", model), " and ", address
        return where, f" is for {owner}, but the model is {model}: name the address of that model too: ", *own
    url = shown(getattr(settings, f"{lead}base_url"))
    return (
        where,
        f" names no provider, and the model is {model}: write {choice.provider}:{url} if that is its address, ",
        "or name both in one place, such as ",
        *(Named(f"{of_role}model", "chat:NAME"), " and ", Named(f"{of_role}base_url", url)),
    )


def _check_url(url: str, allow_http: bool, setting: str | Named) -> str:  # noqa: FBT001 - it is a setting
    if "://" not in url:
        raise NotSetUpError(setting, " must begin with https:// or http://")
    parts = _URL.fullmatch(url)
    if parts is None or int(parts["port"] or 443) not in range(1, 2**16) or not _is_host(parts["host"]):
        raise NotSetUpError(
            setting,
            " must be an address such as https://api.openai.com/v1. A port is 65535 at most, and http is for this "
            "machine only. A user name, a password and a fragment are refused: keys go in headers",
        )
    if named := [name for name, _ in parse_qsl(parts["query"] or "", keep_blank_values=True) if _OF_KEYS.search(name)]:
        told = f" has {shown(named[0].lstrip('?'))}= in its query, which logs and proxies keep: "
        raise NotSetUpError(setting, f"{told}a key goes in a header: key_header in config.toml names it")
    if parts["scheme"].lower() == "http" and not allow_http and not is_this_machine(parts["host"].strip("[]")):
        told = f" would send your prompts, and any key, to {parts['host']} unencrypted: use https. "
        way = "If you trust the network, allow_http = true in config.toml permits http"
        raise NotSetUpError(setting, told + way)
    query = parts["query"] or ""
    return (parts["address"].lower() + (parts["path"] or "")).rstrip("/") + query


def _is_host(host: str) -> bool:
    """Tell whether a host is a name or, if it is written in numbers, a valid IP address."""
    import ipaddress

    try:
        return not re.fullmatch(r"\d+(\.\d+)+|\[.*\]", host) or bool(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        return False


def find_model(choice: ModelChoice) -> Model | None:
    """Return the facts of a model on any server. Gateways put the maker's name before the model's."""
    if VENDORS[choice.provider].api is None:
        return None
    name = choice.name.rpartition("/")[2]
    found = (vendor.find_model(name) for vendor in VENDORS.values())
    return next((model for model in found if model is not None), None)


def context_window(choice: ModelChoice, settings: Settings) -> int | None:
    """Return the most tokens of a prompt and its answer, from the setting or else the model; None if unknown."""
    model = find_model(choice)
    return settings.context_window or (model.context_window if model else None)


def longest_prompt(llm: LlmConfig) -> int | None:
    """Return the most tokens of a prompt beside its answer, for the LLM and its fallback; None if unknown."""
    rooms = (_room_beside_answer(each.choice, each.settings) for each in (llm, llm.fallback) if each)
    return min(filter(None, rooms), default=None)


def _room_beside_answer(choice: ModelChoice, settings: Settings) -> int | None:
    """Return how many tokens the answer leaves of the model's window, at least half; None if unknown."""
    window, model = context_window(choice, settings), find_model(choice)
    share = 4 if settings.source_of("context_window") == SERVER else 2  # the length of an answer is unknown then
    longest = window - min(max_output(model, settings), window // share) if window else None
    max_input = model.max_input if model and not settings.context_window else None
    return min(filter(None, (longest, max_input)), default=None)


SMALLER_PROMPTS = "use --prompt-layout short, which has shorter system prompts, or a smaller --max-output-tokens,"


def explain_misfit(
    choice: ModelChoice, settings: Settings, prompt: Prompt, *, can_be_fitted: Callable[[], bool] | None = None
) -> str | None:
    """Return why a prompt probably leaves no room for an answer, and what to do; None if it fits.

    `can_be_fitted` tells whether the rest of the first prompt leaves room for a smaller codebase, if not by this one.
    """
    longest, window = _room_beside_answer(choice, settings), context_window(choice, settings)
    tokens = estimate_tokens(prompt.text)
    if not longest or not window or tokens <= longest:
        return None
    sizes = ", ".join(f"{name} {size:,} bytes" for name, size in prompt.sizes.items())
    larger = "use a model with a larger window"
    if settings.source_of("context_window") == SERVER:
        larger = "start the server with a larger window, or use a model with one"
    elif settings.context_window:
        larger += " and raise context_window"
    codebase, output = (estimate_tokens(prompt.parts.get(name, "")) for name in ("codebase", "build output"))
    can_shrink = settings.rollup in ("file", "fresh")
    if can_shrink and tokens - codebase < longest:
        advice = 'rollup = "fit" in config.toml makes it fit'
    elif output and tokens - output - codebase * can_shrink < longest:
        advice = "lower build_output_limit"
    else:
        advice = larger
    if not (can_be_fitted() if can_be_fitted else _leaves_room(longest, settings, prompt)):
        ways = f"{SMALLER_PROMPTS} or " if settings.prompt_layout != "short" else ""
        advice = f"the task and the system prompts alone leave no room for a file: {ways}{larger}"
    return (
        f"the prompt does not fit {choice}: about {tokens:,} tokens; {longest:,} fit, with "
        f"{window - longest:,} reserved for the answer ({sizes}); {advice}"
    )


_BESIDE = 600  # tokens: the instructions for edits, which a fit may add, and a codebase of a few lines


def _leaves_room(longest: int, settings: Settings, prompt: Prompt) -> bool:
    """Tell whether the task and the system prompts leave room for a codebase, beside what a repair may add."""
    rest = estimate_tokens(prompt.system + prompt.parts.get("query", "")) + _BESIDE
    return rest + longest // 4 * bool(settings.max_repairs) < longest


def longest_answer(choice: ModelChoice, settings: Settings) -> int:
    """Return the bytes of a reply with the longest answer, a megabyte at most."""
    return min(max_output(find_model(choice), settings) * _BYTES_PER_TOKEN, _LARGEST_ROOM)
