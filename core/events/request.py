"""Asking for an answer: the conversation so far, and what to do with it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from core.events.wire import Wire
from core.settings import Settings

Role = Literal["system", "user", "assistant", "tool"]
GrammarKind = Literal["json_object", "json_schema", "tool_calls"]


class Attachment(Struct, frozen=True, forbid_unknown_fields=True):
    """A document that was pasted or dropped beside a message. `text` is the whole of it.

    `tokens` is what a worker counted of it once, for showing; 0 if nobody did.
    """

    name: str
    text: str
    tokens: int = 0


class ToolCall(Struct, frozen=True, forbid_unknown_fields=True):
    """A function that the model called; `arguments` is a JSON object, as text."""

    id: str
    name: str
    arguments: str


class Tool(Struct, frozen=True, forbid_unknown_fields=True):
    """A function that the model may call; `parameters` is the JSON schema of its arguments, as text."""

    name: str
    description: str = ""
    parameters: str = "{}"


class Message(Struct, frozen=True, forbid_unknown_fields=True):
    """One turn. Attachments are put before `content` when the prompt is rendered.

    An assistant's turn may have `tool_calls`, and a `thought` that is not in its `content`; a turn of the
    role `tool` is the result of the call `tool_call_id`.
    """

    role: Role
    content: str
    attachments: tuple[Attachment, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    thought: str = ""


class Grammar(Struct, frozen=True, forbid_unknown_fields=True):
    """What an answer must be: any JSON object, JSON by the schema `text`, or free text among which calls may
    stand, each JSON by the schema `text` on a line of its own between the marks `begin` and `end`.

    `drafts`: what the grammar forces is drafted.
    """

    kind: GrammarKind
    text: str = ""
    drafts: bool = True
    begin: str = ""
    end: str = ""

    @property
    def begins_at_once(self) -> bool:
        """Whether an answer has the grammar's form from its first token on: nothing is thought before it."""
        return self.kind != "tool_calls"


class Generate(Wire, frozen=True):
    """Answer `messages` (the last one is the user's). `request` is any id that is new.

    `isolated`: as if nothing had been asked before, and nothing of it is kept: a cache of its own,
    empty tables, nothing learned. What else is cached stays as it is.

    `continuation` are the ids of an answer that was ended before it was done, without a stop token. The
    answer goes on behind them as if it had never been interrupted; only what is new of it is told,
    in tokens that count from 0 again. On the wire they are called `apart` and `begun`.

    `raw`: the only message's content is the prompt as it stands, without a chat template. `tools` are
    told to the model by its chat template. `stops`: the answer ends before the first of these texts that
    it would write. `prediction` is what the answer will probably be; it changes nothing but the speed.
    `logit_bias` is added to the logits of token ids. `top_logprobs`: how many of the likeliest tokens are
    told with each token, beside the logprob of its own; None tells neither.
    """

    request: str
    messages: tuple[Message, ...]
    settings: Settings = Settings()
    isolated: bool = field(default=False, name="apart")
    continuation: tuple[int, ...] = field(default=(), name="begun")
    raw: bool = False
    tools: tuple[Tool, ...] = ()
    stops: tuple[str, ...] = ()
    prediction: str = ""
    grammar: Grammar | None = None
    logit_bias: dict[int, float] = field(default_factory=dict)
    top_logprobs: int | None = None


class Cancel(Wire, frozen=True):
    """Stop answering `request` within one step or one prefill chunk. Unknown ids are ignored."""

    request: str


class CountTokens(Wire, frozen=True):
    """Count the tokens of `text` with the loaded model's tokenizer.

    With a `prompt` those of the whole prompt that it would have are counted instead, template and all.
    """

    request: str
    text: str = ""
    prompt: Generate | None = None


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
