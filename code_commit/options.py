"""The options of the main job as they are written: on the command line, in variables `CODE_COMMIT_...`, in config.toml.

`config.Settings` has the values that they set. Here is nothing that takes time to import: `--help` needs it.
"""

from __future__ import annotations  # types cost no time at start-up

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Option:
    """How one setting is written.

    `kind` is what its text becomes: str, int, float, bool (a flag) or tuple (repeatable); `choices` are the only
    texts that it may have, where there are such.
    """

    __slots__ = ("choices", "help", "kind", "metavar")

    def __init__(self, kind: type, help_text: str, metavar: str = "", choices: tuple[str, ...] = ()) -> None:
        self.kind = kind
        self.help = help_text
        self.metavar = metavar
        self.choices = choices

    def parse(self, text: str) -> Any:
        """Turn the text of an option or a variable into the setting's type. Raises ValueError."""
        if self.choices and text not in self.choices:
            raise ValueError(f"must be one of {', '.join(self.choices)}")
        if self.kind is tuple:
            return tuple(part for part in re.split(r"[,\n]", text) if part)
        if self.kind is bool:
            if text.lower() not in _BOOLEANS:
                raise ValueError("must be true or false")
            return _BOOLEANS[text.lower()]
        try:
            return self.kind(text)
        except ValueError as error:
            raise ValueError(f"must be a {'whole ' if self.kind is int else ''}number") from error


_BOOLEANS = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
    "": False,
}

OPTIONS = {
    "model": Option(str, "PROVIDER:NAME (gemini, openai, anthropic, chat, replay)", "MODEL"),
    "base_url": Option(str, "where the API is, when not at the vendor; required for chat:", "URL"),
    "max_repairs": Option(int, "repair queries after a failed build (default 3)", "N"),
    "on_rejected": Option(str, "what follows a rejected response (default retry)", choices=("retry", "stop")),
    "max_output_tokens": Option(int, "most tokens the LLM may generate (default: the model's)", "N"),
    "reasoning_effort": Option(str, "passed on where the provider has it (default: the model's)", "X"),
    "llm_timeout": Option(float, "seconds for one LLM call, retries included (default 3600)", "S"),
    "build_timeout": Option(float, "seconds for one build, 0 for no limit (default 3600)", "S"),
    "prompt_layout": Option(str, "order of the prompt's sections (default spec)", choices=("spec", "cached")),
    "max_cost": Option(float, "US dollars: stop before a call that could pass it", "USD"),
    "allow": Option(tuple, "only paths that match may change (.gitignore syntax, repeatable)", "GLOB"),
    "protect": Option(tuple, "paths that match may not change either (repeatable)", "GLOB"),
    "strict": Option(bool, "reject a change to a file that the rollup lacks or has in another version"),
    "dry_run": Option(bool, "ask once, verify, print the diff that would be applied, change nothing"),
    "rollback": Option(bool, "without a passing build at the end, put every file back as it was"),
    "require_clean": Option(bool, "refuse to start while `git status` is not clean"),
    "sandbox": Option(str, "what the build may touch (default auto)", choices=("auto", "off", "guard", "strict")),
    "json": Option(bool, "print run.json on stdout at the end"),
    "quiet": Option(bool, "print nothing but errors"),
    "verbose": Option(bool, "print more"),
}
