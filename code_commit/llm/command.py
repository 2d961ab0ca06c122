"""`command:PROGRAM ARGUMENTS`: a program of the user's is the LLM. The prompt is its input, its output the answer.

It runs in an empty folder, so that an agent's command finds no tree that it could change.
"""

from code_commit.errors import LLMError
from code_commit.exchange import Prompt, RequestBody, Response
from code_commit.llm.programs import run_program, words_of
from code_commit.llm.replay import LLMWithoutAPI
from code_commit.llm.vendor import LlmConfig, Vendor
from code_commit.project import Project
from code_commit.redaction import whole_characters
from code_commit.runs.attempt_log import AttemptLog
from code_commit.runs.words import duration
from code_commit.terminal import shown

VENDOR = Vendor(
    name="command", needs_key=False, names="a program with its arguments", sample="command:PROGRAM ARGUMENTS"
)
LONGEST_OUTPUT = 64 << 20  # bytes; no model writes that much
_ROOM = 1_000_000  # bytes of the disk for an answer
_MOST_SAID = 600  # characters of the end of stderr in a message


class CommandLLM(LLMWithoutAPI):
    """Runs the program once for each call. It is not run again after an error, and has no price."""

    finish_reason = "exit code 0"

    def __init__(self, config: LlmConfig, project: Project) -> None:
        """Raise NotSetUpError where there is no such program outside of the project."""
        self._command, self._settings, self._root = config.choice.name, config.settings, project.root
        self._words = words_of(self._command, project.root)

    def complete(self, prompt: Prompt, listener: AttemptLog) -> Response:
        """Return what the program prints. Raises LLMError where it fails, hangs, or prints no end of it."""
        listener.make_room(_ROOM)
        listener.requested(self._command, {}, RequestBody(system=prompt.system, user=prompt.user))
        listener.reserved(None)
        try:
            done = run_program(
                self._words,
                self._root,
                given=prompt.text.encode("utf-8", "replace"),
                timeout=self._settings.llm_timeout,
                longest=LONGEST_OUTPUT,
                progressed=lambda size: listener.progressed(f"{size / 1000:.1f} kB received"),
            )
        except OSError as error:
            name = shown(self._words[0])
            listener.released(None)
            raise LLMError(f"{name} cannot be run: {error.strerror}; check --model command:...", "refused") from error
        text = whole_characters(done.output.decode("utf-8", "replace"))
        if done.code != 0:
            if text.strip() and not done.is_too_long:
                listener.kept(text, is_whole=False)
            said = done.said.strip()[-_MOST_SAID:]
            limit = f" ({duration(self._settings.llm_timeout)}, --llm-timeout)" if done.is_late else ""
            told = f"the program {shown(self._words[0])} {done.how}{limit}" + (f":\n{said}" if said else "")
            raise LLMError(told, "timeout" if done.is_late else "refused")
        return self.tell(text, listener)
