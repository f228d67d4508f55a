"""The prompt of a request: messages, chat template, regions and token ids.

Other packages import from here alone (a contract in pyproject.toml).
"""

from core.prompt.conversation import Region
from core.prompt.probe import format_of, inner_of, switches_thinking, thinks_by_default, unread_calls
from core.prompt.rendering import (
    ImageText,
    Prompt,
    check_continuation,
    check_fits,
    count_tokens,
    offsets,
    plain,
    plain_length,
    render,
    with_answer_opened,
)
from core.prompt.template import renderer
from core.prompt.tokens import Span, encode, may_merge

__all__ = [
    "ImageText",
    "Prompt",
    "Region",
    "Span",
    "check_continuation",
    "check_fits",
    "count_tokens",
    "encode",
    "format_of",
    "inner_of",
    "may_merge",
    "offsets",
    "plain",
    "plain_length",
    "render",
    "renderer",
    "switches_thinking",
    "thinks_by_default",
    "unread_calls",
    "with_answer_opened",
]
