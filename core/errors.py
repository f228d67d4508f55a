"""Draftlight's exceptions, in one hierarchy with three families:

- `RequestError`: the request cannot be fulfilled. The user can change it.
- `WorkerError`: the worker process failed. A restart helps.
- `InternalError`: a bug in Draftlight, to be reported.

The message states the value and what is allowed, the `hint` what to do. `code` is stable, short and not
displayed; the window and tests depend on it.
"""

from __future__ import annotations

from typing import ClassVar, Literal

Kind = Literal["request", "worker", "internal"]


class DraftlightError(Exception):
    """Base class of all errors; not raised itself."""

    kind: ClassVar[Kind] = "internal"
    code: ClassVar[str] = "error"

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class RequestError(DraftlightError):
    """The request cannot be fulfilled."""

    kind: ClassVar[Kind] = "request"
    code: ClassVar[str] = "bad-request"


class SettingError(RequestError):
    """A setting is unknown, has the wrong type, or is out of bounds."""

    code = "bad-setting"


class UnknownDrafterError(RequestError):
    """No drafter with this name is registered."""

    code = "unknown-drafter"


class EmptyPromptError(RequestError):
    """The prompt is empty."""

    code = "empty-prompt"


_LONGER = "choose a model with a longer context"


class PromptTooLongError(RequestError):
    """The prompt is longer than the context allows.

    `tokens`: length of the prompt. `limit_tokens`: maximum length. `chosen`: the limit is a setting, not the
    model's context.
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
    """A model is required and none is loaded."""

    code = "no-model"


class GrammarError(RequestError):
    """A grammar cannot be compiled for this model, or reached a state that allows no token."""

    code = "bad-grammar"


class ModelError(RequestError):
    """A model cannot be loaded: missing, incomplete, or unsupported."""

    code = "bad-model"


class ModelNotHereError(ModelError):
    """A hub model that is not downloaded."""

    code = "model-not-here"


class ModelTooLargeError(ModelError):
    """A model needs more memory than the machine has."""

    code = "model-too-large"


class BrokenLogitsError(RequestError):
    """The model returned logits that are NaN or all infinite, so that no token can be chosen."""

    code = "broken-logits"

    def __init__(self) -> None:
        super().__init__(
            "The answer ends here: the model's output is no longer numbers (NaN or infinite logits).",
            "Download the model again, for its weights may be damaged. If that does not help, choose a"
            " version of another precision, for this one may overflow.",
        )


class ChatTemplateError(ModelError):
    """A model's chat template refused the conversation or exceeded its limits."""

    code = "bad-chat-template"

    def __init__(self, model: str, what: str, hint: str) -> None:
        super().__init__(f"The chat template of {model} {what}.", hint)


class DownloadError(ModelError):
    """A download cannot continue. Partial files are kept."""

    code = "download-failed"


class DraftModelError(RequestError):
    """The draft model is missing, has another tokenizer family, or cannot draft."""

    code = "bad-draft-model"


class ClusterError(RequestError):
    """A model cannot run on this cluster."""

    code = "bad-cluster"


class TableError(RequestError):
    """A table file is damaged, not Draftlight's, newer, or of another tokenizer family."""

    code = "bad-table"


class EncoderUnavailableError(RequestError):
    """The sentence encoder's files are missing or damaged; only words are compared."""

    code = "no-encoder"


class MissingLibraryError(RequestError):
    """A system library or package is not installed. The hint names it."""

    code = "missing-library"


class WorkerError(DraftlightError):
    """The worker process ended, hangs or cannot start."""

    kind: ClassVar[Kind] = "worker"
    code: ClassVar[str] = "worker-failed"


class OutOfMemoryError(WorkerError):
    """Memory for the model or its caches is exhausted."""

    code = "out-of-memory"


class ProtocolError(DraftlightError):
    """A line of the protocol is not a valid message: a bug on one side."""

    code = "bad-message"


class InternalError(DraftlightError):
    """An invariant of Draftlight was violated."""

    code = "internal"
