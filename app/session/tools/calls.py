"""Records of tool calls in an answer. Pure.

    waiting ─allow→ running ─→ done | failed | unknown
       └─refuse→ denied

`waiting`: no permission yet. `unknown`: the process or the window ended while the call was running, so it may
have run. No transition leads back: a call runs at most once. A record follows the tokens of the generation
that wrote the call; several records may follow the same generation.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct

from app.session import strings
from core.events import Attachment, Image, Message, Tool, ToolCall
from core.tools.messages import ServerTool

CallState = Literal["waiting", "running", "done", "denied", "failed", "unknown"]
Scope = Literal["once", "chat", "always"]
# A longer result is given to the model as a document.
LONG_CHARACTERS = 2_000
_ANY_OBJECT = '{"type": "object"}'


class ChosenTool(Struct, frozen=True):
    """A tool of a server that a chat may use."""

    server: str
    tool: str


class OfferedTool(Struct, frozen=True):
    """A tool of a server, as it is declared to the model under `name`, which is unique in the chat.

    `fingerprint`: see `core.tools.messages`.
    """

    name: str
    server: str
    tool: ServerTool
    fingerprint: str

    @property
    def declared(self) -> Tool:
        """The declaration for the model."""
        return Tool(self.name, self.tool.description, _object_schema(self.tool.schema))


def _object_schema(schema: str) -> str:
    """The schema of a tool; that of any object if it is not the schema of an object."""
    try:
        value = msgspec.json.decode(schema)
    except (msgspec.DecodeError, RecursionError):
        return _ANY_OBJECT
    return schema if isinstance(value, dict) and value.get("type", "object") == "object" else _ANY_OBJECT


class CallRecord(Struct, frozen=True):
    """A call that the model wrote, and its result.

    - `id`: unique. `name`: the tool's declared name, `fingerprint` its hash, both at the time of the call.
    - `written`: the arguments as the model wrote them, `arguments` as permitted or shown for permission; both
      are JSON objects as text.
    - `result`: the returned text, or the reason why there is none. `images`: returned images. `left_out`:
      descriptions of other returned parts. `is_cut`: the text was cut.
    - `seconds`: duration of the call. `allowed_by`: the permission's scope, empty before.
    - `is_left_out`: the result is no longer in the prompt, because the context was full.
    - `after`: the number of tokens of the answer before the call's result.
    """

    id: str
    name: str
    server: str = ""
    tool: str = ""
    arguments: str = "{}"
    written: str = "{}"
    fingerprint: str = ""
    state: CallState = "waiting"
    result: str = ""
    images: tuple[Image, ...] = ()
    left_out: tuple[str, ...] = ()
    is_cut: bool = False
    seconds: float = 0.0
    allowed_by: Literal["", "once", "chat", "always"] = ""
    after: int = 0
    is_left_out: bool = False

    @property
    def is_open(self) -> bool:
        """Whether the call has no result yet."""
        return self.state in ("waiting", "running")

    @property
    def message(self) -> Message:
        """The result as a message of the prompt. A long text is a document, which can be read sparsely."""
        if self.is_left_out:
            return Message("tool", strings.RESULT_LEFT_OUT, tool_call_id=self.id)
        notes = [strings.LEFT_OUT.format(what=each) for each in self.left_out]
        document = self.document
        content = "\n".join([*([] if document else [self.result]), *notes])
        documents = (document,) if document else ()
        return Message("tool", content, documents, tool_call_id=self.id, images=self.images)

    @property
    def document(self) -> Attachment | None:
        """The result as a document, if it is long and still in the prompt."""
        if self.is_left_out or len(self.result) < LONG_CHARACTERS:
            return None
        return Attachment(strings.OF_TOOL.format(name=self.tool), self.result)

    @property
    def title(self) -> str:
        """“Called get_forecast of weather, 0.8 s”."""
        how = f"{self.seconds:.1f} s" if self.state == "done" else strings.CALL_STATES[self.state]
        return strings.CALLED.format(tool=self.tool, server=self.server, how=how)

    @property
    def written_call(self) -> ToolCall:
        """The call as later prompts repeat it."""
        return ToolCall(self.id, self.name, self.arguments)
