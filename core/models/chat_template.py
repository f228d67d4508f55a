"""ChatTemplate: the chat template of a tokenizer, and how it is rendered.

Most templates are a text in the model's folder, which the template process renders; some are code of mlx-lm
or transformers.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from mlx_lm.tokenizer_utils import TokenizerWrapper
from transformers import PreTrainedTokenizerBase

from core.answer_format import AnswerFormat
from core.events import Tool
from core.models.answers import format_of
from core.models.library.naming import base_name, readable
from core.models.template import RefusedError, Rendering, renderer
from core.models.template_support import Render, TemplateSupport
from core.models.thinking import VARIABLE, Value, history_variables, knows_thinking, thinking_variables
from core.models.traced import Run

Variables = tuple[tuple[str, Value], ...]


class ChatTemplate:
    """The chat template of a tokenizer, with the variables for one prompt."""

    def __init__(self, tokenizer: TokenizerWrapper, tools: Sequence[Tool], thinking: bool) -> None:
        inner = inner_of(tokenizer)
        self._tokenizer = tokenizer
        self._has_tools = bool(tools)
        self.name = readable(base_name(Path(str(getattr(inner, "name_or_path", "") or "this model"))))
        self.source = ""
        if _is_of_the_folder(tokenizer):
            try:
                self.source = str(inner.get_chat_template(tools=list(tools) or None))
            except ValueError as error:  # none of several templates is the default one
                raise RefusedError(self.name, str(error)) from error
            # What mlx-lm and transformers give a template.
            named = {
                **inner.special_tokens_map,
                **thinking_variables(self.source, thinking),
                **history_variables(self.source),
            }
            variables = tuple(
                (key, value if isinstance(value, bool | int) else str(value)) for key, value in named.items()
            )
            self.render = _render_of(self.name, self.source, variables)
            self.support = _support(self.name, self.source, variables)
        else:
            self.render = _render_by_library(tokenizer, self.name, thinking and tokenizer.has_thinking)
            self.support = TemplateSupport(self.render)

    def answer_format(self) -> AnswerFormat:
        """How the model writes its answers."""
        return format_of(self._tokenizer, self.support.tail, tools=self._has_tools)

    def kept_thought_tags(self) -> tuple[str, str] | None:
        """The text that opens a thought and the tag that closes it, if contents keep thoughts in them.

        None for templates that read thoughts in a field of their own, or that have no variable for keeping
        the thoughts of earlier answers.
        """
        if not history_variables(self.source) or self.support.thought_field is not None:
            return None
        form = self.answer_format()
        tags = next((each for each in form.thoughts if form.thought_end in ("", each.end)), None)
        if tags is None or not self.support.keeps_thought_in_content(tags.begin, tags.end):
            return None
        opened = self.support.tail.rfind(tags.begin) if form.begins == "thought" else -1
        return (self.support.tail[opened:] if opened >= 0 else f"{tags.begin}\n"), tags.end


def _render_of(name: str, source: str, variables: Variables) -> Render:
    def render(turns: Sequence[Any], tools: Sequence[Any], begins: bool) -> Rendering:
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
            # Templates for tools alone go through them without asking whether there are any.
            return renderer().render(name, source, turns, {**named, "tools": []})

    return render


@lru_cache(8)
def _support(name: str, source: str, variables: Variables) -> TemplateSupport:
    return TemplateSupport(_render_of(name, source, variables))


def inner_of(tokenizer: TokenizerWrapper) -> Any:
    """The tokenizer of transformers inside mlx-lm's wrapper."""
    return getattr(tokenizer, "_tokenizer", tokenizer)


def switches_thinking(tokenizer: TokenizerWrapper) -> bool:
    """Whether thinking can be switched on and off: by the folder's template, or by a library's code."""
    if not tokenizer.has_chat_template:
        return False
    if not _is_of_the_folder(tokenizer):
        return bool(tokenizer.has_thinking)
    return knows_thinking(folder_template(tokenizer))


def folder_template(tokenizer: TokenizerWrapper) -> str:
    """The chat template's source; empty if there is none, or if it is code of a library."""
    if not tokenizer.has_chat_template or not _is_of_the_folder(tokenizer):
        return ""
    try:
        return str(inner_of(tokenizer).get_chat_template())
    except ValueError:  # none of several is the default one: rendering says so
        return ""


def _is_of_the_folder(tokenizer: TokenizerWrapper) -> bool:
    """Whether the template is the folder's, and not code of mlx-lm or transformers."""
    inner = inner_of(tokenizer)
    own: Any = getattr(tokenizer, "_chat_template", None)
    return own is None and type(inner).apply_chat_template is PreTrainedTokenizerBase.apply_chat_template


def _render_by_library(tokenizer: TokenizerWrapper, name: str, thinking: bool) -> Render:
    """Rendering by the code of mlx-lm or transformers, which runs in this process and cannot be traced.

    The conversation is rendered twice, the second time with marks around each content; if nothing but the
    marks differs, the marks tell where the contents are.
    """

    def written(turns: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]], begins: bool) -> str:
        named = {VARIABLE: thinking, **({"tools": list(tools)} if tools else {})}
        try:
            return str(
                tokenizer.apply_chat_template(
                    list(turns), add_generation_prompt=begins, tokenize=False, **named
                )
            )
        except Exception as error:  # libraries raise their own kinds
            raise RefusedError(name, str(error) or type(error).__name__) from error

    def render(
        turns: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]], begins: bool
    ) -> Rendering:
        text = written(turns, tools, begins)
        nonce = secrets.token_hex(8)
        marked = [_marked(turn, number, nonce) for number, turn in enumerate(turns)]
        try:
            parts = re.split(rf"\[{nonce}(\d+)\[|\]{nonce}\]", written(marked, tools, begins))
        except RefusedError:
            parts = []
        pieces, runs, at = parts[::2], [], 0
        for piece, source in zip(pieces, [None, *parts[1::2]]):
            if source is not None:
                runs.append(Run(at, at + len(piece), int(source), 0))
            at += len(piece)
        # Contents that cannot be located are in no run only if the code rewrites them.
        return Rendering(text, tuple(runs) if "".join(pieces) == text else _searched(turns, text))

    return render


def _marked(turn: Mapping[str, Any], number: int, nonce: str) -> dict[str, Any]:
    def marked(value: Any, source: int) -> Any:
        if isinstance(value, str):
            return f"[{nonce}{source}[{value}]{nonce}]" if value else value
        if isinstance(value, list):
            return [marked(each, source) for each in value]
        if isinstance(value, dict):
            return {key: each if key == "type" else marked(each, source) for key, each in value.items()}
        return value

    kept = ("role", "type", "tool_call_id")
    return {
        key: value if key in kept else marked(value, 2 * number + (key != "content"))
        for key, value in turn.items()
    }


def _searched(turns: Sequence[Mapping[str, Any]], text: str) -> tuple[Run, ...]:
    """The contents as they are found in `text`, one after the other."""
    runs: list[Run] = []
    at = 0
    for number, turn in enumerate(turns):
        content = turn["content"]
        words = content.strip() if isinstance(content, str) else ""
        start = text.find(words, at) if words else -1
        if start >= 0:
            at = start + len(words)
            runs.append(Run(start, at, 2 * number, len(content) - len(content.lstrip())))
    return tuple(runs)
