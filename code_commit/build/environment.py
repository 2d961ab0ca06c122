"""The environment that build.sh sees: no API key, no setting of ours, but which attempt of which run it is."""

from collections.abc import Collection, Mapping

from code_commit.keys import KEY_VARIABLES, SHORTEST_KEY, ApiKey
from code_commit.settings import ENVIRONMENT_PREFIX

ATTEMPT_VARIABLE = "CODE_COMMIT_ATTEMPT"
RUN_VARIABLE = "CODE_COMMIT_RUN"


def build_environment(
    environment: Mapping[str, str], keys: Collection[ApiKey], attempt: int, run: str
) -> dict[str, str]:
    """Return `environment` without the API keys and the tool's settings, and with the attempt and the run named.

    A variable goes when it is one that holds a key by name, whether or not the key is used, when its value
    contains a key, whatever its name, and when its name itself contains one.
    """
    secrets = [key.value for key in keys if key.value]
    secrets += [environment[name] for name in KEY_VARIABLES.values() if len(environment.get(name, "")) >= SHORTEST_KEY]
    cleaned = {
        name: value
        for name, value in environment.items()
        if name not in KEY_VARIABLES.values()
        and not name.startswith(ENVIRONMENT_PREFIX)
        and not any(secret in value or secret in name for secret in secrets)
    }
    return cleaned | {ATTEMPT_VARIABLE: str(attempt), RUN_VARIABLE: run}
