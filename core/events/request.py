"""Asking for an answer: the conversation so far, and what to do with it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from core.events.wire import Wire
from core.settings import Settings

Role = Literal["system", "user", "assistant"]


class Attachment(Struct, frozen=True, forbid_unknown_fields=True):
    """A document that was pasted or dropped beside a message. `text` is the whole of it.

    `tokens` is what a worker counted of it once, for showing; 0 if nobody did.
    """

    name: str
    text: str
    tokens: int = 0


class Message(Struct, frozen=True, forbid_unknown_fields=True):
    """One turn. Attachments are put before `content` when the prompt is rendered."""

    role: Role
    content: str
    attachments: tuple[Attachment, ...] = ()


class Generate(Wire, frozen=True):
    """Answer `messages` (the last one is the user's). `request` is any id that is new.

    `isolated`: as if nothing had been asked before, and nothing of it is kept: a cache of its own,
    empty tables, nothing learned. What else is cached stays as it is.

    `continuation` are the ids of an answer that was ended before it was done, without a stop token. The
    answer goes on behind them as if it had never been interrupted; only what is new of it is told,
    in tokens that count from 0 again. On the wire they are called `apart` and `begun`.
    """

    request: str
    messages: tuple[Message, ...]
    settings: Settings = Settings()
    isolated: bool = field(default=False, name="apart")
    continuation: tuple[int, ...] = field(default=(), name="begun")


class Cancel(Wire, frozen=True):
    """Stop answering `request` within one step or one prefill chunk. Unknown ids are ignored."""

    request: str


class CountTokens(Wire, frozen=True):
    """Count the tokens of `text` with the loaded model's tokenizer."""

    request: str
    text: str


class TokenCount(Wire, frozen=True):
    """Answer to `count_tokens`; an estimate for a text far longer than the model's context.

    `dense_s`: how long reading all of them would take here, with nothing before them; None if that is
    not known yet.
    """

    request: str
    tokens: int
    dense_s: float | None = None


RequestCommand = Generate | Cancel | CountTokens
RequestEvent = TokenCount
