"""Origins: which words of an answer occur in its sources, and where, and which figures occur in none.

Used by the window, the command line and the server, not by the worker; imports no Qt, MLX or
NumPy. A source is a text that the model was given: an attached document, a pasted text of more than
`PASTED_CHARACTERS` characters, the result of a tool. Earlier answers are not sources.

    indexes = [Index(source.text) for source in sources]
    while not index.build(0.004): ...          # in slices, between two events of the window
    origins = trace(answer, sources, indexes, question)

- `Run`: characters of the answer that are copied word by word from a `Place` of a source. Letter case,
  dashes, quotes, line breaks, hyphenation at line ends and Markdown marks make no difference; digits, signs
  and units do.
- `Fact`: a number, date, amount, identifier, quotation or name of the answer, with its `state`. Only facts
  with the state `nowhere` are marked; `skipped` ones occur in a passage that was not read.
- `Tracer`: the same for an answer that is being written. `extend` adds text; `origins` returns those of the
  text added up to now, equal to those of `trace`.

`copies` finds where the short texts of a call's arguments come from: exact parts of any length.

`Conversation` has the sources of messages as they are sent to the model; `spans_read` returns which ranges of
a document a sparse prefill read (the argument `read` of `trace`).

All character ranges are end-exclusive and count the characters of a str.

Importing the package loads the types and `copies`. `Conversation`, `Index`, `Tracer` and `trace` are loaded
when they are first imported from here, in a tenth of a second: most chats have no source.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from core.origins.copied import Copy, copies
from core.origins.types import (
    PASTED_CHARACTERS,
    Fact,
    FactKind,
    FactState,
    Origins,
    Place,
    Run,
    Source,
    Spans,
    spans_read,
)

if TYPE_CHECKING:
    from core.origins.conversation import Conversation
    from core.origins.index import Index
    from core.origins.tracer import Tracer, trace

_MODULES = {"Conversation": "conversation", "Index": "index", "Tracer": "tracer", "trace": "tracer"}

__all__ = [
    "PASTED_CHARACTERS",
    "Conversation",
    "Copy",
    "Fact",
    "FactKind",
    "FactState",
    "Index",
    "Origins",
    "Place",
    "Run",
    "Source",
    "Spans",
    "Tracer",
    "copies",
    "spans_read",
    "trace",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
