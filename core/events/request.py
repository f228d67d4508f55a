"""Requests for an answer: the conversation, its settings and options."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from core.events.wire import Wire
from core.settings import Settings

Role = Literal["system", "user", "assistant", "tool"]
GrammarKind = Literal["json_object", "json_schema", "tool_calls"]

# The id of a token that a person wrote.
TYPED = -1


class Attachment(Struct, frozen=True, forbid_unknown_fields=True):
    """A document attached to a message, with its full text. `tokens`: for display; 0 if not counted."""

    name: str
    text: str
    tokens: int = 0


class ToolCall(Struct, frozen=True, forbid_unknown_fields=True):
    """A call of a function by the model. `arguments`: a JSON object as text."""

    id: str
    name: str
    arguments: str


class Tool(Struct, frozen=True, forbid_unknown_fields=True):
    """A function that the model may call. `parameters`: the JSON schema of its arguments as text."""

    name: str
    description: str = ""
    parameters: str = "{}"


class Message(Struct, frozen=True, forbid_unknown_fields=True):
    """One turn. The prompt contains the attachments before `content`.

    An assistant's turn may have `tool_calls`, and a `thought` that is not part of its `content`; a turn with
    the role `tool` is the result of the call `tool_call_id`.
    """

    role: Role
    content: str
    attachments: tuple[Attachment, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    thought: str = ""


class Grammar(Struct, frozen=True, forbid_unknown_fields=True):
    """Required form of an answer: any JSON object, JSON by the schema `text`, or text with calls.

    A call is JSON by the schema `text` on a separate line between the marks `begin` and `end`. `drafts`:
    forced tokens are drafted.
    """

    kind: GrammarKind
    text: str = ""
    drafts: bool = True
    begin: str = ""
    end: str = ""

    @property
    def begins_at_once(self) -> bool:
        """Whether the grammar applies from the first token on, without a thought before it."""
        return self.kind != "tool_calls"


class Generate(Wire, frozen=True):
    """Answers `messages`, of which the last one is the user's. `request`: a new id.

    - `isolated` (`apart` on the wire): uses a separate cache and empty tables, and keeps and learns nothing.
    - `continuation` (`begun` on the wire): ids of an interrupted answer, without a stop token. The answer
      continues after them as if never interrupted; events contain only new tokens, counted from 0.
    - `continuation_texts` (`begun_texts` on the wire): the texts of these tokens, if a person edited the
      answer. Those with the id −1 are the person's, an empty one is a deletion, and the model continues as if
      it had written them.
    - `raw`: the only message's content is the prompt, without a chat template.
    - `tools`: declared through the chat template.
    - `stops`: the answer ends before the first occurrence of one of these texts.
    - `prediction`: the probable answer; affects only the speed.
    - `logit_bias`: added to the logits of token ids.
    - `chat`: the chat's id, under which its cache may be saved on disk (`prefill.save`). Empty: it is not,
      and the answer has no citations.
    - `top_logprobs`: number of most probable tokens reported with each token's logprob; None reports none.
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
    chat: str = ""
    continuation_texts: tuple[str, ...] = field(default=(), name="begun_texts")


class Cancel(Wire, frozen=True):
    """Stops `request` within one step or one prefill chunk. Unknown ids are ignored."""

    request: str


class CountTokens(Wire, frozen=True):
    """Counts the tokens of `text`, or of the rendered `prompt` if given, with the loaded tokenizer."""

    request: str
    text: str = ""
    prompt: Generate | None = None


class TokenCount(Wire, frozen=True):
    """Answer to `count_tokens`; an estimate for a text much longer than the model's context.

    `dense_s`: predicted time of a dense prefill on this machine; None if unknown.
    """

    request: str
    tokens: int
    dense_s: float | None = None


RequestCommand = Generate | Cancel | CountTokens
RequestEvent = TokenCount
