"""Chat templates rendered apart: as transformers renders them, by a process that stays and is replaced."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress

import pytest
from transformers.utils.chat_template_utils import render_jinja_template

from core.engine.engine import Engine
from core.errors import ChatTemplateError
from core.events import Message
from core.prompt import render
from core.prompt.template import TemplateRenderer
from tests.core.toy import TEMPLATE

TURNS = [
    {"role": "system", "content": "Answer in one word."},
    {"role": "user", "content": "  “Größe”, <b>&amp;</b> 🎈?\n"},
    {"role": "assistant", "content": "Big"},
    {"role": "user", "content": "Sure?"},
]
TEMPLATES = [
    TEMPLATE,
    "{{ bos_token }}{{ messages | tojson }} {{ messages | tojson(indent=2) }}",
    "  {% for m in messages %}\n  {% if loop.index == 2 %}{% continue %}{% endif %}\n{{ m.role }}\n"
    "{% if loop.last %}{% break %}{% endif %}{% endfor %}\n",
    "{% for m in messages %}{% generation %}{% set x = m.content %}{{ x }}{% endgeneration %}{{ x }}"
    "{% endfor %}",
    "{{ dict(a=1, **messages[0]) }} {{ dict.fromkeys(['a', 'b'], 2) }} {{ {'b': 1, 'a': 2} | dictsort }}"
    "{% set n = namespace(seen=0) %}{% set n.seen = n.seen + 1 %}{{ n.seen }}",
    "{% if tools is none and not documents and not enable_thinking %}plain{% endif %}"
    "{{ strftime_now('%Y') }}",
    "{{ messages[1].content | tojson(ensure_ascii=False) | safe }}{{ '<i>' | safe }}",
]


@pytest.fixture
def renderer() -> Iterator[TemplateRenderer]:
    made = TemplateRenderer()
    yield made
    made.close()


@pytest.mark.sweep
@pytest.mark.parametrize("template", TEMPLATES)
def test_it_writes_what_transformers_writes(renderer: TemplateRenderer, template: str) -> None:
    named = {"bos_token": "<s>", "enable_thinking": False, "add_generation_prompt": True}
    (theirs,), _ = render_jinja_template([TURNS], chat_template=template, **named)
    ours = renderer.render("Toy", template, TURNS, {**named, "tools": None, "documents": None})
    assert ours == theirs


@pytest.mark.sweep
def test_the_starters_prompt_is_that_of_its_tokenizer(starter_engine: Engine) -> None:
    tokenizer = starter_engine.loaded.tokenizer
    messages = [Message(turn["role"], turn["content"]) for turn in TURNS]  # type: ignore[arg-type]
    prompt = render(tokenizer, messages)
    assert prompt.ids == tokenizer.apply_chat_template(TURNS, add_generation_prompt=True)
    assert prompt.text == tokenizer.apply_chat_template(TURNS, add_generation_prompt=True, tokenize=False)


def test_one_process_renders_turn_after_turn(renderer: TemplateRenderer) -> None:
    renderer.render("Toy", TEMPLATE, TURNS, {})
    first = renderer.pid
    renderer.render("Toy", "other", TURNS, {})
    assert renderer.pid == first


def test_a_process_that_is_gone_is_replaced(renderer: TemplateRenderer) -> None:
    renderer.render("Toy", TEMPLATE, TURNS, {})
    assert renderer.pid
    os.kill(renderer.pid, signal.SIGKILL)
    with suppress(ChatTemplateError):  # it may be gone already, or only in the middle
        renderer.render("Toy", TEMPLATE, TURNS, {})
    assert "Sure?" in renderer.render("Toy", TEMPLATE, TURNS, {})
