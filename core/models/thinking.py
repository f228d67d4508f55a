"""Thinking: the variables by which a chat template switches it, and what is said where it cannot be switched.

Templates name the switch differently. A variable counts if an expression of the template reads it; words in
its texts, keys and attributes of messages do not count.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

from core.events import Change

# For templates that are code of mlx-lm or transformers.
VARIABLE = "enable_thinking"

Value = bool | int | str
_BLOCK = re.compile(r"\{[%{](?:[^%}]|[%}](?!\}))*[%}]\}")
_STRING = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_REFUSES_OFF = re.compile(r"enable_thinking is false\s*[-+]?%\}\s*\{\{[-+]?\s*raise_exception")


class _Switch(Struct, frozen=True):
    """A variable with its values for thinking and for none. With None the template's default stays.

    `word`: a text that the template must have. `reduces`: the model still thinks, but less.
    """

    name: str
    on: Value | None
    off: Value
    word: str = ""
    reduces: bool = False


# In the order in which they are preferred.
_SWITCHES = (
    _Switch("enable_thinking", True, False),
    _Switch("thinking", True, False),
    _Switch("thinking_mode", "enabled", "disabled", "disabled"),
    _Switch("thinking_mode", "thinking", "chat", "chat"),
    _Switch("thinking_mode", "on", "off", "off"),
    _Switch("thinking_budget", None, 0),
    _Switch("reasoning_effort", "high", "no_think", "no_think"),
    _Switch("reasoning_effort", None, "none", "none"),
    _Switch("reasoning_effort", None, "minimal", "minimal", reduces=True),
    _Switch("reasoning_effort", None, "low", "low", reduces=True),
    _Switch("reasoning_effort", None, "low", "medium", reduces=True),
)

# Variables by which templates keep the thoughts of earlier answers, and the values that do.
_KEEPS_THOUGHTS: dict[str, Value] = {
    "preserve_thinking": True,
    "clear_thinking": False,
    "truncate_history_thinking": False,
}


def knows_thinking(template: str) -> bool:
    """Whether a variable of the chat `template` switches thinking off."""
    switch = _switch(template)
    return switch is not None and not switch.reduces


def thinking_variables(template: str, thinking: bool, effort: str = "") -> dict[str, Value]:
    """The variables that tell a chat `template` whether the model is to think.

    `effort` is passed as `reasoning_effort` where the model thinks and the template has this word.
    """
    switch = _switch(template)
    given: dict[str, Value] = {}
    if switch is not None:
        value = switch.on if thinking else switch.off
        if value is not None:
            given[switch.name] = value
    if thinking and effort and "reasoning_effort" in _variables(template) and _has(template, effort):
        given["reasoning_effort"] = effort
    return given


def history_variables(template: str) -> dict[str, Value]:
    """The variables by which a chat `template` keeps the thoughts of earlier answers.

    The next prompt then begins with this one and its answer, which the cache holds already.
    """
    variables = _variables(template)
    return {name: value for name, value in _KEEPS_THOUGHTS.items() if name in variables}


def thinking_change(template: str) -> Change:
    """What is said where the model was told not to think, and its template has no switch for that."""
    switch = _switch(template)
    if switch is None:
        return Change("chat.thinking", "off", "on", "the model's chat template has no switch for it")
    why = "the model's chat template can only reduce thinking"
    return Change("chat.thinking", "off", f"{switch.name}={switch.off}", why)


@lru_cache(16)
def _switch(template: str) -> _Switch | None:
    variables = _variables(template)
    refuses_off = {"enable_thinking"} if _REFUSES_OFF.search(template) else set()
    return next(
        (
            each
            for each in _SWITCHES
            if each.name in variables - refuses_off and (not each.word or _has(template, each.word))
        ),
        None,
    )


@lru_cache(16)
def _variables(template: str) -> frozenset[str]:
    """The names that a template's expressions read from what it is given."""
    found: set[str] = set()
    for block in _BLOCK.findall(template):
        code = _STRING.sub("''", block)
        found.update(re.findall(r"(?<![\w.])([A-Za-z_]\w*)\b(?!\s*=[^=])", code))
    return frozenset(found)


def _has(template: str, word: str) -> bool:
    return f"'{word}'" in template or f'"{word}"' in template
