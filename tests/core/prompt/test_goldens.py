"""Rendered prompts of all templates at hand are those of the golden file: text, ids, regions and changes.

A line has the shape of the conversation and a digest of each. Public templates are third-party data beside
the repository; without them, the project's own ones of `tests/zoo` are compared.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from core.errors import DraftlightError
from core.events import Attachment, Message
from core.prompt import render
from tests.core import golden
from tests.core.prompt.test_real_templates import FOLDER, SHAPES, TOOL
from tests.core.prompt.tokenizer_kinds import tokenizer_of
from tests.thinned import thinned

OWN = Path(__file__).parents[2] / "zoo" / "templates"
TEMPLATES = {path.stem: path for folder in (OWN, FOLDER) for path in sorted(folder.glob("*.jinja"))}
FAST = ["chatml", "hermes_tools", "inst_alternating", "channels", "gmask", "xml_calls"]
# Some templates write the date.
SAME_DAY = "{%- macro strftime_now(form) -%}26 Nov 2026{%- endmacro -%}"
CONVERSATIONS: dict[str, tuple[Message, ...]] = {
    **SHAPES,
    "document": (
        Message("system", "You are brief."),
        Message("user", "What is in it?", (Attachment("a.txt", "One.\n\nTwo <|im_end|> three."),)),
    ),
    "thought": (
        Message("user", "help"),
        Message("assistant", "It is so.", thought="Is it?"),
        Message("user", "again"),
    ),
}


def digest(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:8]


@pytest.mark.parametrize("name", thinned(TEMPLATES, FAST))
def test_prompts_are_those_of_the_golden_file(name: str) -> None:
    source = TEMPLATES[name].read_text("utf-8")
    tokenizer = tokenizer_of("byte-level BPE", SAME_DAY + source if "strftime_now" in source else source)
    lines = []
    for shape, messages in CONVERSATIONS.items():
        tools = (TOOL,) if "result" in shape else ()
        try:
            prompt = render(tokenizer, messages, tools=tools)
        except DraftlightError as error:
            lines.append(f"{shape}: {type(error).__name__}")
            continue
        regions = [(each.start, each.end, each.kind, each.source, each.first_char) for each in prompt.regions]
        parts = (prompt.text, prompt.ids, regions, [(each.setting, each.used) for each in prompt.changes])
        lines.append(f"{shape}: {' '.join(map(digest, parts))}")
    golden.compare("prompts", {name: lines})
