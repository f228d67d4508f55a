"""Draftlight's exceptions, in one hierarchy with three families:

- `RequestError`: the request cannot be fulfilled. The user can change it.
- `WorkerError`: the worker process failed. A restart helps.
- `InternalError`: a bug in Draftlight, to be reported.

A class that is caught by name is declared as `class SettingError(RequestError, code="bad-setting")`; other
errors have their `code` alone: `RequestError(…, code="bad-file")`. A code is a stable, short name that the
window and clients depend on and that is not displayed. The message states the value and the allowed
ones, the `hint` what to do.
"""

from __future__ import annotations

from typing import ClassVar, Literal

_MOST_CHARACTERS = 300

Kind = Literal["request", "worker", "internal"]


class DraftlightError(Exception):
    """Base class of all errors; not raised itself. Subclasses inherit `kind`."""

    kind: ClassVar[Kind] = "internal"
    code: str = "error"

    def __init_subclass__(cls, *, code: str = "", kind: Kind | None = None) -> None:
        super().__init_subclass__()
        cls.code = code or cls.code
        cls.kind = kind or cls.kind

    def __init__(self, message: str, hint: str = "", *, code: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if code:
            self.code = code

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class RequestError(DraftlightError, code="bad-request", kind="request"):
    """The request cannot be fulfilled."""


class SettingError(RequestError, code="bad-setting"):
    """A setting is unknown, has the wrong type, or is out of bounds."""


class UnknownDrafterError(RequestError, code="unknown-drafter"):
    """No drafter with this name is registered."""


class EmptyPromptError(RequestError, code="empty-prompt"):
    """The prompt is empty."""


_LONGER = "choose a model with a longer context"


class PromptTooLongError(RequestError, code="prompt-too-long"):
    """The prompt is longer than the context allows.

    `tokens`: length of the prompt. `limit_tokens`: maximum length. `chosen`: the limit is a setting, not the
    model's context.
    """

    def __init__(self, tokens: int, limit_tokens: int, chosen: bool = False) -> None:
        self.tokens = tokens
        self.limit_tokens = limit_tokens
        super().__init__(
            f"The prompt has {tokens:,} tokens, {tokens - limit_tokens:,} more than the"
            f" {limit_tokens:,} that {'the context limit allows' if chosen else 'fit this model'}.",
            f"Shorten it, start a new chat, or {'raise the limit' if chosen else _LONGER}.",
        )


class NotEnoughMemoryError(RequestError, code="not-enough-memory"):
    """An answer would need more memory than is left. Nothing was computed."""


class NoModelError(RequestError, code="no-model"):
    """A model is required and none is loaded."""


class GrammarError(RequestError, code="bad-grammar"):
    """A grammar cannot be compiled for this model, or reached a state that allows no token."""


class ModelError(RequestError, code="bad-model"):
    """A model cannot be loaded: missing, incomplete, or unsupported."""


class ModelNotHereError(ModelError, code="model-not-here"):
    """A hub model that is not downloaded."""


class ModelTooLargeError(ModelError, code="model-too-large"):
    """A model needs more memory than the machine has."""


class BrokenLogitsError(RequestError, code="broken-logits"):
    """The model returned logits that are NaN, all infinite or all equal, so that no token can be chosen."""

    def __init__(self) -> None:
        super().__init__(
            "The answer ends here: the model's output is invalid (NaN, infinite or equal logits).",
            "Download the model again, for its weights may be damaged. If that does not help, choose a"
            " version of another precision, for this one may overflow.",
        )


class ChatTemplateError(ModelError, code="bad-chat-template"):
    """A model's chat template refused the conversation or exceeded its limits."""

    def __init__(self, model: str, what: str, hint: str) -> None:
        super().__init__(f"The chat template of {model} {what}.", hint)


class DownloadError(ModelError, code="download-failed"):
    """A download cannot continue. Partial files are kept."""


class DraftModelError(RequestError, code="bad-draft-model"):
    """The draft model is missing, has another tokenizer family, or cannot draft."""


class ClusterError(RequestError, code="bad-cluster"):
    """A model cannot run on this cluster."""


class TableError(RequestError, code="bad-table"):
    """A table file is damaged, not Draftlight's, newer, or of another tokenizer family."""


class EncoderUnavailableError(RequestError, code="no-encoder"):
    """The sentence encoder's files are missing or damaged; only words are compared."""


class MissingLibraryError(RequestError, code="missing-library"):
    """A system library or package is not installed. The hint names it."""


class WorkerError(DraftlightError, code="worker-failed", kind="worker"):
    """The worker process ended, hangs or cannot start."""


class OutOfMemoryError(WorkerError, code="out-of-memory"):
    """Memory for the model or its caches is exhausted."""


class GpuFaultError(WorkerError, code="gpu-fault"):
    """The system ended the GPU's work, or the GPU failed. Nothing that was computed can be relied on."""


class ProtocolError(DraftlightError, code="bad-message"):
    """A line of the protocol is not a valid message: a bug on one side."""


class InternalError(DraftlightError, code="internal"):
    """An invariant of Draftlight was violated."""


def reason_of(error: BaseException) -> str:
    """Why `error` arose, as a part of a sentence: one line, without the exception's name.

    The number and the path of a system error are left out, because the sentence names the path.
    """
    match error:
        case DraftlightError():
            text = error.message
        case OSError(strerror=str(text)) if text:
            pass
        case KeyError(args=(key, *_)):
            text = f"“{key}” is missing"
        case RecursionError():
            text = "it is nested too deeply"
        case MemoryError(args=()):
            text = "there is not enough memory"
        case UnicodeDecodeError():
            text = f"it is not valid {error.encoding.upper()}"
        case _:
            text = str(error).strip()
    first, _, rest = text.partition("\n")
    first = first.strip().rstrip(".")
    if first.endswith(":"):  # a list follows
        first = " ".join([first, *rest.split()]).rstrip(".")
    return first[:_MOST_CHARACTERS] or "no reason was given"
