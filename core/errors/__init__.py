"""Every error Draftlight raises on purpose, in one tree.

Three families, because three different people have to act:

- `RequestError`: what was asked cannot be done. Whoever asked can change it.
- `WorkerError`: the worker process failed. Restarting it helps.
- `InternalError`: Draftlight broke its own rules. A bug to report.

A message says what was given and what is allowed; `hint` says what to do.
`code` is stable, short and never shown: tests and the window branch on it.
"""

from __future__ import annotations

from typing import ClassVar, Literal

Kind = Literal["request", "worker", "internal"]


class DraftlightError(Exception):
    """Base of all errors. Never raised itself."""

    kind: ClassVar[Kind] = "internal"
    code: ClassVar[str] = "error"

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class RequestError(DraftlightError):
    """What was asked cannot be done as asked."""

    kind: ClassVar[Kind] = "request"
    code: ClassVar[str] = "bad-request"


class SettingError(RequestError):
    """A setting is unknown, of the wrong type or out of its bounds."""

    code = "bad-setting"


class UnknownDrafterError(RequestError):
    """No drafter of that name is registered."""

    code = "unknown-drafter"


class EmptyPromptError(RequestError):
    """Nothing was asked."""

    code = "empty-prompt"


_LONGER = "choose a model with a longer context"


class PromptTooLongError(RequestError):
    """The prompt leaves no room in the context.

    `tokens` is the prompt's length, `limit_tokens` the most it may be; `chosen`: because a setting
    says so, not the model.
    """

    code = "prompt-too-long"

    def __init__(self, tokens: int, limit_tokens: int, chosen: bool = False) -> None:
        self.tokens = tokens
        self.limit_tokens = limit_tokens
        super().__init__(
            f"The prompt has {tokens:,} tokens, {tokens - limit_tokens:,} more than the"
            f" {limit_tokens:,} that {'the context limit allows' if chosen else 'fit this model'}.",
            f"Shorten it, start a new chat, or {'raise the limit' if chosen else _LONGER}.",
        )


class NoModelError(RequestError):
    """Something needs a model and none is loaded."""

    code = "no-model"


class GrammarError(RequestError):
    """A grammar cannot be compiled, or not for this model; or it came to an end that it does not allow."""

    code = "bad-grammar"


class ModelError(RequestError):
    """A model cannot be loaded: not there, incomplete, or of a kind that is not supported."""

    code = "bad-model"


class ModelNotHereError(ModelError):
    """A hub name that is not on this machine: it must be downloaded before it can be loaded."""

    code = "model-not-here"


class ModelTooLargeError(ModelError):
    """A model needs more memory than the machine gives it."""

    code = "model-too-large"


class BrokenLogitsError(RequestError):
    """The model answered with logits that are not numbers, or all infinite: nothing can be chosen."""

    code = "broken-logits"

    def __init__(self) -> None:
        super().__init__(
            "The answer ends here: the model's output is no longer numbers (NaN or infinite logits).",
            "Download the model again, for its weights may be damaged. If that does not help, choose a"
            " version of another precision, for this one may overflow.",
        )


class ChatTemplateError(ModelError):
    """A model's chat template gives no prompt: it refuses, or takes more time or memory than it may."""

    code = "bad-chat-template"

    def __init__(self, model: str, what: str, hint: str) -> None:
        super().__init__(f"The chat template of {model} {what}.", hint)


class DownloadError(ModelError):
    """A download cannot go on. What arrived is kept."""

    code = "download-failed"


class DraftModelError(RequestError):
    """The draft model is missing, of another tokenizer family, or cannot draft."""

    code = "bad-draft-model"


class ClusterError(RequestError):
    """A model cannot run over several machines, or not over these, as they are."""

    code = "bad-cluster"


class TableError(RequestError):
    """A table file is damaged, foreign, newer, or of another tokenizer family."""

    code = "bad-table"


class EncoderUnavailableError(RequestError):
    """The sentence encoder's files are missing or damaged: text is compared by its words alone."""

    code = "no-encoder"


class MissingLibraryError(RequestError):
    """A system library or package is not installed. The hint names it."""

    code = "missing-library"


class WorkerError(DraftlightError):
    """The worker process died, hung or could not start."""

    kind: ClassVar[Kind] = "worker"
    code: ClassVar[str] = "worker-failed"


class OutOfMemoryError(WorkerError):
    """The machine refused memory for the model or its caches."""

    code = "out-of-memory"


class ProtocolError(DraftlightError):
    """A line on the wire is not a message. Our own bug on one of the two sides."""

    code = "bad-message"


class InternalError(DraftlightError):
    """Draftlight broke one of its own invariants."""

    code = "internal"
