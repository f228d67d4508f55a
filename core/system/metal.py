"""Errors of Metal command buffers: what a failure means, by Apple's constant and code.

MLX raises `RuntimeError` for all, "[METAL] Command buffer execution failed: TEXT (CODE:CONSTANT)". macOS
translates TEXT, so only code and constant are compared. MLX 0.32 raises it late, at the next synchronization
(mlx#3523); earlier versions ended the process, with the same text on stderr.
"""

from __future__ import annotations

import re
from typing import Literal

# memory: not enough memory. interrupted: the GPU's watchdog ended work that ran too long or delayed the
# display (mlx#3267). gpu: another failure, often caused by another program's.
Fault = Literal["", "memory", "interrupted", "gpu"]

_PREFIX = "kIOGPUCommandBufferCallbackError"
_BUFFER = re.compile(rf"\(?\b([0-9a-f]{{8}}):\s*({_PREFIX}\w*)?|({_PREFIX}\w+)", re.IGNORECASE)
# MLX's "[malloc] Unable to allocate" and "[metal::malloc] Resource limit", not the C library's own reports.
_ALLOCATION = re.compile(r"\[(?=[\w:]*malloc)[\w:]*\]|out of memory", re.IGNORECASE)
_FAULTS: dict[str, Fault] = {
    **dict.fromkeys(("OutOfMemory", "00000008"), "memory"),
    **dict.fromkeys(("ImpactingInteractivity", "0000000e"), "interrupted"),
    **dict.fromkeys(("Timeout", "00000002", "Hang", "00000003"), "interrupted"),
}


def fault_of(text: str) -> Fault:
    """The fault that an error's text, or a line of a log, names; empty if it names none."""
    if "command buffer" not in text.lower() and _PREFIX not in text:
        return "memory" if _ALLOCATION.search(text) else ""
    found = _BUFFER.search(text)
    if found is None:
        return "gpu"
    code, named, alone = found.groups()
    constant = (named or alone or "").removeprefix(_PREFIX)
    return _FAULTS.get(constant) or _FAULTS.get((code or "").lower()) or "gpu"
