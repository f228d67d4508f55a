"""Chat templates: rendering, the format of the model's answers, and the variables that switch thinking.

Most templates are text in the model's folder, rendered by the template process; some are code in mlx-lm or
transformers, which runs in this process.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from mlx_lm.tokenizer_utils import TokenizerWrapper
from msgspec import Struct
from transformers import PreTrainedTokenizerBase

from core.answer_format import AnswerFormat, answer_format
from core.errors import ChatTemplateError, reason_of
from core.events import Change, Tool
from core.folders.places import base_name, readable
from core.prompt.template import RefusedError, TemplateSupport, Turn, Write, renderer
from core.settings.request import ThinkingMode

Value = bool | int | str
Variables = tuple[tuple[str, Value], ...]


class ChatTemplate:
    """The chat template of a tokenizer, with the variables for one prompt."""

    def __init__(self, tokenizer: TokenizerWrapper, tools: Sequence[Tool], thinking: ThinkingMode) -> None:
        self.inner = inner = inner_of(tokenizer)
        self._tokenizer = tokenizer
        self._has_tools = bool(tools)
        self.name = readable(base_name(Path(str(getattr(inner, "name_or_path", "") or "this model"))))
        self.source = ""
        if _is_of_the_folder(tokenizer):
            try:
                self.source = str(inner.get_chat_template(tools=list(tools) or None))
            except ValueError as error:  # none of several templates is the default
                raise RefusedError(self.name, str(error)) from error
            # Variables that mlx-lm and transformers pass to a template.
            named = {
                **inner.special_tokens_map,
                **variables_of(self.source, thinking),
            }
            variables = tuple(
                (key, value if isinstance(value, bool | int) else str(value)) for key, value in named.items()
            )
            self.write = _write_of(self.name, self.source, variables)
            self.support = _support(self.name, self.source, variables)
        else:
            self.write = _write_by_library(tokenizer, self.name, thinking)
            self.support = TemplateSupport(self.write)

    def answer_format(self) -> AnswerFormat:
        """How the model writes its answers."""
        return format_of(self._tokenizer, self.support.tail, tools=self._has_tools)

    def kept_thought_tags(self) -> tuple[str, str] | None:
        """The text that opens a thought and the tag that closes it, if contents keep thoughts in them.

        None for templates that read thoughts from a separate field, or that have no variable for keeping
        the thoughts of earlier answers.
        """
        if not _history_variables(self.source) or self.support.thought_field is not None:
            return None
        form = self.answer_format()
        tags = next((each for each in form.thoughts if form.thought_end in ("", each.end)), None)
        if tags is None or not self.support.keeps_thought_in_content(tags.begin, tags.end):
            return None
        opened = self.support.tail.rfind(tags.begin) if form.begins == "thought" else -1
        return (self.support.tail[opened:] if opened >= 0 else f"{tags.begin}\n"), tags.end


def _write_of(name: str, source: str, variables: Variables) -> Write:
    def write(turns: Sequence[Turn], tools: Sequence[Turn], begins: bool) -> str:
        named = {
            **dict(variables),
            "tools": list(tools) or None,
            "documents": None,
            "add_generation_prompt": begins,
        }
        try:
            return renderer().render(name, source, turns, named)
        except RefusedError:
            if tools:
                raise
            # Templates that are only for tools iterate over them without a check.
            return renderer().render(name, source, turns, {**named, "tools": []})

    return write


@lru_cache(8)
def _support(name: str, source: str, variables: Variables) -> TemplateSupport:
    return TemplateSupport(_write_of(name, source, variables))


def inner_of(tokenizer: TokenizerWrapper) -> Any:
    """The tokenizer of transformers inside mlx-lm's wrapper."""
    return getattr(tokenizer, "_tokenizer", tokenizer)


def switches_thinking(tokenizer: TokenizerWrapper) -> bool:
    """Whether thinking can be switched on and off: by the folder's template, or by a library's code."""
    if not tokenizer.has_chat_template:
        return False
    if not _is_of_the_folder(tokenizer):
        return bool(tokenizer.has_thinking)
    return has_thinking_switch(folder_template(tokenizer))


def folder_template(tokenizer: TokenizerWrapper, *, tools: bool = False) -> str:
    """The chat template's source; empty if there is none, or if it is code of a library.

    With `tools`, the template for tools, if there are several named templates.
    """
    if not tokenizer.has_chat_template or not _is_of_the_folder(tokenizer):
        return ""
    try:
        return str(inner_of(tokenizer).get_chat_template(tools=[{}] if tools else None))
    except ValueError:  # none of several is the default one: rendering says so
        return ""


def _is_of_the_folder(tokenizer: TokenizerWrapper) -> bool:
    """Whether the template is a file of the model's folder, not code of mlx-lm or transformers."""
    inner = inner_of(tokenizer)
    own: Any = getattr(tokenizer, "_chat_template", None)
    return own is None and type(inner).apply_chat_template is PreTrainedTokenizerBase.apply_chat_template


def _write_by_library(tokenizer: TokenizerWrapper, name: str, thinking: ThinkingMode) -> Write:
    def write(turns: Sequence[Turn], tools: Sequence[Turn], begins: bool) -> str:
        named: dict[str, Any] = {"tools": list(tools)} if tools else {}
        if thinking != "auto":
            named[VARIABLE] = tokenizer.has_thinking and thinking == "on"
        try:
            return str(
                tokenizer.apply_chat_template(
                    list(turns), add_generation_prompt=begins, tokenize=False, **named
                )
            )
        except Exception as error:  # libraries raise various errors
            raise RefusedError(name, reason_of(error)) from error

    return write


# ---- the format of answers


def format_of(tokenizer: TokenizerWrapper, prompt: str = "", *, tools: bool = True) -> AnswerFormat:
    """The format of the answer to the rendered `prompt`; without a prompt, of answers in general.

    `tools`: tools were declared to the chat template.
    """
    start, end = tokenizer.think_start, tokenizer.think_end
    return answer_format(
        template_source(tokenizer, tools=tools),
        prompt,
        inner_of(tokenizer).get_added_vocab(),
        think_tags=(start, end) if start and end else None,
        tool_parser=str(tokenizer.init_kwargs.get("tool_parser_type") or ""),
    )


def unread_calls(format: AnswerFormat, tools: Sequence[Tool]) -> tuple[Change, ...]:
    """The change reported if the model's syntax of tool calls is unknown."""
    if not tools or format.calls:
        return ()
    names = ", ".join(tool.name for tool in tools)
    reason = "the syntax of tool calls in the model's chat template is not known"
    return (
        Change("tools", names, "declared; calls stay text, except a Python list at the beginning", reason),
    )


def template_source(tokenizer: TokenizerWrapper, *, tools: bool = False) -> str:
    """The source of the chat template, or of the library code that replaces it; empty without one."""
    if not tokenizer.has_chat_template or _is_of_the_folder(tokenizer):
        return folder_template(tokenizer, tools=tools)
    own: Any = getattr(tokenizer, "_chat_template", None) or type(inner_of(tokenizer)).apply_chat_template
    module = sys.modules.get(getattr(own, "__module__", ""))
    try:
        return inspect.getsource(module) if module is not None else ""
    except (OSError, TypeError):
        return ""


# ---- variables for thinking

# Variables that switch thinking. A variable counts if an expression of the template reads it; words in string
# literals, keys and attributes of messages do not count.

# For templates that are code of mlx-lm or transformers.
VARIABLE = "enable_thinking"

_BLOCK = re.compile(r"\{[%{](?:[^%}]|[%}](?!\}))*[%}]\}")
_STRING = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_REFUSES_OFF = re.compile(r"enable_thinking is false\s*[-+]?%\}\s*\{\{[-+]?\s*raise_exception")


class _Switch(Struct, frozen=True):
    """A variable that switches thinking, with its values for on and off. None: the template's default.

    `word`: text that the template must contain. `reduces`: the model still thinks, but less.
    """

    name: str
    on: Value | None
    off: Value
    word: str = ""
    reduces: bool = False


# In order of preference.
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

# Variables that make templates keep the thoughts of earlier answers, and their values.
_KEEPS_THOUGHTS: dict[str, Value] = {
    "preserve_thinking": True,
    "clear_thinking": False,
    "truncate_history_thinking": False,
}


def has_thinking_switch(template: str) -> bool:
    """Whether a variable of the chat `template` switches thinking off."""
    switch = _switch(template)
    return switch is not None and not switch.reduces


def variables_of(template: str, thinking: ThinkingMode = "auto") -> dict[str, Value]:
    """The variables of a prompt for a chat `template`, except the tokenizer's special tokens.

    They switch thinking, unless it has its own default (`auto`), and keep the thoughts of earlier answers.
    """
    switch = _switch(template)
    value = {"auto": None, "on": switch.on, "off": switch.off}[thinking] if switch else None
    chosen = {switch.name: value} if switch and value is not None else {}
    return {**chosen, **_history_variables(template)}


def thinks_by_default(tokenizer: TokenizerWrapper) -> bool:
    """Whether the template lets the model think if nothing is switched; True if it refuses both prompts."""
    try:
        asked = [{"role": "user", "content": "one"}]
        default, off = (ChatTemplate(tokenizer, (), mode).write(asked, (), True) for mode in ("auto", "off"))
    except ChatTemplateError:
        return True
    return default != off


def _history_variables(template: str) -> dict[str, Value]:
    """The variables that make a chat `template` keep the thoughts of earlier answers.

    The next prompt then begins with this prompt and its answer, which the cache already holds.
    """
    variables = _variables(template)
    return {name: value for name, value in _KEEPS_THOUGHTS.items() if name in variables}


def thinking_change(template: str) -> Change:
    """The change for a request without thinking to a template that cannot switch it off."""
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
    """The variables that a template's expressions read."""
    found: set[str] = set()
    for block in _BLOCK.findall(template):
        code = _STRING.sub("''", block)
        found.update(re.findall(r"(?<![\w.])([A-Za-z_]\w*)\b(?!\s*=[^=])", code))
    return frozenset(found)


def _has(template: str, word: str) -> bool:
    return f"'{word}'" in template or f'"{word}"' in template
