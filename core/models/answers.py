"""How the loaded model writes its answers, from its tokenizer and its chat template."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlx_lm.tokenizer_utils import TokenizerWrapper
from msgspec.structs import replace
from transformers import PreTrainedTokenizerBase

from core.answer_format import AnswerFormat, answer_format, answer_opening
from core.events import Change, Tool

if TYPE_CHECKING:
    from core.models.prompt import Prompt


def format_of(tokenizer: TokenizerWrapper, prompt: str = "", *, tools: bool = True) -> AnswerFormat:
    """The format of the answer to the rendered `prompt`; without one, of answers in general.

    `tools`: whether tools were declared to the chat template.
    """
    inner: Any = getattr(tokenizer, "_tokenizer", tokenizer)
    start, end = tokenizer.think_start, tokenizer.think_end
    return answer_format(
        template_source(tokenizer, tools=tools),
        prompt,
        inner.get_added_vocab(),
        think_tags=(start, end) if start and end else None,
        tool_parser=str(tokenizer.init_kwargs.get("tool_parser_type") or ""),
    )


def with_answer_opened(
    tokenizer: TokenizerWrapper, prompt: Prompt, format: AnswerFormat
) -> tuple[Prompt, AnswerFormat]:
    """`prompt` with the thought or the header closed that it leaves open, for an answer by a grammar."""
    opening = answer_opening(format, prompt.text)
    if not opening:
        return prompt, format
    inner: Any = getattr(tokenizer, "_tokenizer", tokenizer)
    more = [int(i) for i in inner(opening, add_special_tokens=False)["input_ids"]]
    opened = replace(prompt, ids=[*prompt.ids, *more], text=prompt.text + opening)
    return opened, replace(format, begins="text", thought_end="")


def unread_calls(format: AnswerFormat, tools: Sequence[Tool]) -> tuple[Change, ...]:
    """Says that calls stay text, where the model writes them in a syntax that is not known."""
    if not tools or format.calls:
        return ()
    names = ", ".join(tool.name for tool in tools)
    reason = "the syntax of tool calls in the model's chat template is not known"
    return (Change("tools", names, "declared, but calls stay text", reason),)


def template_source(tokenizer: TokenizerWrapper, *, tools: bool = False) -> str:
    """The source of the chat template, or of a library's code in its place; empty if there is none.

    With `tools`, of several named templates the one for tools.
    """
    inner: Any = getattr(tokenizer, "_tokenizer", tokenizer)
    if not tokenizer.has_chat_template:
        return ""
    renderer: Any = getattr(tokenizer, "_chat_template", None) or type(inner).apply_chat_template
    if renderer is PreTrainedTokenizerBase.apply_chat_template:
        try:
            return str(inner.get_chat_template(tools=[{}] if tools else None))
        except ValueError:  # none of several is the default one: rendering says so
            return ""
    module = sys.modules.get(getattr(renderer, "__module__", ""))
    if module is None:
        return ""
    try:
        return inspect.getsource(module)
    except (OSError, TypeError):
        return ""
