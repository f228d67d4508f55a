"""`prepared`: message types that msgspec can be given in any thread.

msgspec (0.22) stores its description of a struct, dataclass or TypedDict at the class before the description
is complete, and completes it in Python code that another thread can interrupt. A second thread that uses the
class then reads null pointers, and the process ends with SIGSEGV: on a busy machine about one start of the
worker in 130, when two of its threads read the header of a model's file. So each type is described once,
under a lock, before its first use. `tests/test_prepared.py` checks every typed call of msgspec.

Delete this when a msgspec stores complete descriptions only; a test there fails then.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar, overload

import msgspec

_Kind = TypeVar("_Kind")

_describing = threading.Lock()
_described: set[Any] = set()


@overload
def prepared(kind: type[_Kind]) -> type[_Kind]: ...
@overload
def prepared(kind: Any) -> Any: ...
def prepared(kind: Any) -> Any:
    """Returns `kind` after msgspec has described it. Any thread; others wait meanwhile."""
    if kind not in _described:
        with _describing:
            msgspec.msgpack.Decoder(kind)
            _described.add(kind)
    return kind
