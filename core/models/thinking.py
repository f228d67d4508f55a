"""Thinking: whether a chat template can switch it, and what is said where it cannot.

The switch is the variable `enable_thinking`, which Qwen3, SmolLM3, GLM and others ask for.
"""

from __future__ import annotations

import re

from core.events import Change

VARIABLE = "enable_thinking"
_KNOWS = re.compile(rf"\b{VARIABLE}\b")


def knows_thinking(template: str) -> bool:
    """Whether a chat `template` asks for the switch."""
    return bool(_KNOWS.search(template))


def thinks_anyway() -> Change:
    """The model was told not to think, and its template has no word for that."""
    return Change("chat.thinking", "off", "on", "the model's chat template has no switch for it")
