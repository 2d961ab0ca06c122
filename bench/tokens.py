"""What the bound of a prompt's tokens is beside their number, by the tokenizers that litellm bundles."""

import base64
import os
import random
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from bench.comparing import MEGABYTE, SHOWN, Comparison, Plan, counted, limit, step
from bench.environments import Tool
from bench.measuring import Command, CommandFailedError, UnavailableError
from bench.projects import sources, write_file

CHARACTERS = 50_000
COPY = "a copy of the bytes"
OPENAI = {
    "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
}
"""The files of two of OpenAI's tokenizers, as tiktoken looks for them."""
ANTHROPIC = "anthropic_tokenizer.json"


def measure(plan: Plan) -> Iterator[Comparison]:
    """The time of the bound, then the bound beside the tokens of code, CSV, base64 and Chinese."""
    with plan.work_folder() as folder:
        large = write_file(folder / "large", "def 测试(): return 1\n" * (plan.sizes(1, 10)[-1] * MEGABYTE // 25))
        size = f"{large.stat().st_size / MEGABYTE:.0f} MB"
        sides = step(folder, "most_tokens", large), step(folder, "copy", large)
        yield Comparison(f"the bound of tokens of {size}", COPY, *sides, 5, SHOWN)
        tokenizers = _tokenizers()
        for what, text in _texts().items():
            bound = partial(_bound, step(folder, "most_tokens", write_file(folder / what, text)))
            for name, count in tokenizers.items():
                tokens = count(text)
                known = counted(lambda tool, bound=bound, tokens=tokens: _checked(bound(tool), tokens))
                label = f"the bound of tokens of {what}, {name}"
                yield Comparison(label, "the tokens", known, limit(figure=tokens), 1, unit="tokens")


def _bound(side: Callable[[Tool], Command], tool: Tool) -> float:
    return side(tool).run().peak


def _checked(bound: float, tokens: int) -> float:
    """Return the bound. Raises CommandFailedError where it is none."""
    if bound < tokens:
        raise CommandFailedError(f"a bound of {bound:,.0f} tokens for {tokens:,}")
    return bound


def _texts() -> dict[str, str]:
    numbers = random.Random(1)
    rows = (",".join(str(numbers.randrange(10)) for _ in range(20)) for _ in range(CHARACTERS // 40))
    return {
        "code": "".join(text for _, text in sources(total_bytes=CHARACTERS))[:CHARACTERS],
        "CSV": "\n".join(rows),
        "base64": base64.b64encode(numbers.randbytes(CHARACTERS * 3 // 4)).decode(),
        "Chinese": "".join(chr(numbers.randrange(0x4E00, 0x9FFF)) for _ in range(CHARACTERS)),
    }


def _tokenizers() -> dict[str, Callable[[str], int]]:
    """Return what counts the tokens of a text, by name. Raises UnavailableError."""
    litellm = find_spec("litellm")  # which is not imported: it would look for prices in the network
    if litellm is None or not litellm.submodule_search_locations:
        raise UnavailableError("litellm, which bundles tokenizers, is not installed beside the benchmarks")
    folder = Path(litellm.submodule_search_locations[0], "litellm_core_utils", "tokenizers")
    if missing := [name for name in (*OPENAI.values(), ANTHROPIC) if not (folder / name).is_file()]:
        raise UnavailableError(f"this litellm does not bundle {', '.join(missing)}")
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    try:
        import tiktoken
        from tokenizers import Tokenizer
    except ImportError as error:
        raise UnavailableError(str(error)) from error
    of_claude = Tokenizer.from_file(str(folder / ANTHROPIC))
    counters = {name: partial(_count, tiktoken.get_encoding(name).encode_ordinary) for name in OPENAI}
    return counters | {"an earlier Claude's": lambda text: len(of_claude.encode(text).ids)}


def _count(encode: Callable[[str], list[int]], text: str) -> int:
    return len(encode(text))
