"""Members of a request that only OpenAI gets."""

from code_commit.llm.openai import takes_cache_options


def test_which_models_take_cache_options():
    taking = [
        "gpt-5.6-sol",
        "gpt-5.6",
        "gpt-6-luna",
        "gpt-6.2-sol",
        "gpt-6.1-terra",
        "gpt-7",
        "gpt-10.1-x",
        "openai/gpt-6.2-sol",
    ]
    refusing = [
        "gpt-5.5",
        "gpt-5",
        "gpt-5.2",
        "gpt-4o",
        "gpt-4.1",
        "o3",
        "my-gpt-6",
        "gpt-oss-120b",
        "gpt-4.61",
        f"gpt-{9:099999}",
    ]
    assert [name for name in [*taking, *refusing] if takes_cache_options(name)] == taking
