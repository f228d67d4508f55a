"""Thinking, switched by the chat template where that knows the switch, and said where it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.engine.engine import Engine
from core.events import Change, Finished, Generate, Grammar, Message, Token
from core.models.loader import LoadedModel, load
from core.prompt import render
from core.prompt.probe import has_thinking_switch, thinking_change, variables_of
from core.settings import Settings, assign_all
from core.settings.request import ThinkingMode
from tests.core.thinking_toy import SWITCHED, write_thinking_toy
from tests.core.toy import TEMPLATE

ASKED = (Message("user", "Why?"),)


def toy(folder: Path, template: str, *, tags: bool = True) -> LoadedModel:
    write_thinking_toy(folder, template, tags=tags)
    return load(str(folder))


@pytest.mark.parametrize("tags", [True, False])
def test_a_template_that_knows_the_switch_gets_it(tmp_path: Path, tags: bool) -> None:
    loaded = toy(tmp_path, SWITCHED, tags=tags)
    assert loaded.info.thinks
    thinking, at_once = (render(loaded.tokenizer, ASKED, thinking=wanted) for wanted in ("auto", "off"))
    assert thinking.text.endswith("<|assistant|>")
    assert at_once.text.endswith("<|assistant|><think></think>")
    assert not thinking.changes
    assert not at_once.changes


def test_a_model_that_thinks_and_has_no_switch_says_so(tmp_path: Path) -> None:
    loaded = toy(tmp_path, TEMPLATE)
    assert not loaded.info.thinks
    assert render(loaded.tokenizer, ASKED, thinking="off").changes == (
        Change("chat.thinking", "off", "on", "the model's chat template has no switch for it"),
    )
    assert render(loaded.tokenizer, ASKED).changes == ()


def test_a_model_that_never_thinks_has_nothing_to_say(tmp_path: Path) -> None:
    loaded = toy(tmp_path, TEMPLATE, tags=False)
    assert not loaded.info.thinks
    assert render(loaded.tokenizer, ASKED, thinking="off").changes == ()


def test_the_answer_follows_the_setting_and_says_what_it_could_not(tmp_path: Path) -> None:
    engine = Engine()
    off = assign_all(
        Settings(), [("chat.thinking", "off"), ("sampling.max_tokens", 3), ("drafting.drafter", "off")]
    )

    def answered(template: str, settings: Settings, name: str) -> Finished:
        engine.use(toy(tmp_path / name, template))
        *_, last = engine.generate(Generate("r", ASKED, settings))
        assert isinstance(last, Finished)
        return last

    on = assign_all(off, [("chat.thinking", "on")])
    at_once, thinking = answered(SWITCHED, off, "a"), answered(SWITCHED, on, "b")
    assert at_once.stats.prompt_tokens == thinking.stats.prompt_tokens + 2
    assert at_once.effective.settings.chat.thinking == "off"
    assert at_once.effective.changes == ()
    changes = answered(TEMPLATE, off, "c").effective.changes
    assert [change.setting for change in changes] == ["chat.thinking"]
    engine.close()


OPENED = TEMPLATE.replace("<|assistant|>{% endif %}", "<|assistant|><think>{% endif %}")


def test_an_answer_by_a_grammar_closes_an_open_thought(tmp_path: Path) -> None:
    engine = Engine()
    engine.use(toy(tmp_path, OPENED))
    chosen = assign_all(Settings(), [("sampling.max_tokens", 8), ("drafting.drafter", "off")])

    def answered(grammar: Grammar | None) -> tuple[str, str, Finished]:
        *_, last = events = list(engine.generate(Generate("r", ASKED, chosen, grammar=grammar)))
        assert isinstance(last, Finished)
        first = next(event for event in events if isinstance(event, Token))
        assert first.format is not None
        assert first.format == last.effective.format
        return first.format.begins, first.format.thought_end, last

    begins, end, free = answered(None)
    assert (begins, end) == ("thought", "</think>")
    assert free.effective.changes == ()
    begins, end, forced = answered(Grammar("json_object"))
    assert (begins, end) == ("text", "")
    assert forced.stats.prompt_tokens == free.stats.prompt_tokens + 1
    assert [change.setting for change in forced.effective.changes] == ["chat.thinking"]
    engine.close()


@pytest.mark.parametrize(
    ("template", "on", "off"),
    [
        ("{% if enable_thinking %}x{% endif %}", {"enable_thinking": True}, {"enable_thinking": False}),
        ("{% if not thinking is defined %}x{% endif %}", {"thinking": True}, {"thinking": False}),
        (
            "{% if thinking_mode == 'disabled' %}x{% endif %}",
            {"thinking_mode": "enabled"},
            {"thinking_mode": "disabled"},
        ),
        (
            '{% if thinking_mode == "chat" %}x{% endif %}',
            {"thinking_mode": "thinking"},
            {"thinking_mode": "chat"},
        ),
        ("{% if thinking_budget == 0 %}x{% endif %}", {}, {"thinking_budget": 0}),
        (
            "{% if reasoning_effort == 'no_think' %}x{% endif %}",
            {"reasoning_effort": "high"},
            {"reasoning_effort": "no_think"},
        ),
        ("{{ 'none' if reasoning_effort == 'none' }}", {}, {"reasoning_effort": "none"}),
        ("Think with enable_thinking. {{ messages }}", {}, {}),
        ("{% set ns = namespace(enable_thinking=true) %}{% if ns.enable_thinking %}x{% endif %}", {}, {}),
        ("{% if message.thinking %}{{ message['thinking'] }}{{ 'your thinking' }}{% endif %}", {}, {}),
    ],
)
def test_templates_have_switches_of_several_names(
    template: str, on: dict[str, object], off: dict[str, object]
) -> None:
    assert variables_of(template, "auto") == {}
    assert variables_of(template, "on") == on
    assert variables_of(template, "off") == off
    assert has_thinking_switch(template) == bool(off)


def test_a_template_that_only_reduces_thinking_says_so() -> None:
    template = "{% set reasoning_effort = reasoning_effort or 'medium' %}<|channel|>"
    assert not has_thinking_switch(template)
    assert variables_of(template, "off") == {"reasoning_effort": "low"}
    assert "reduce" in thinking_change(template).reason
    refusing = "{% if enable_thinking is false %}{{ raise_exception('No.') }}{% endif %}"
    assert not has_thinking_switch(refusing)
    assert variables_of(refusing, "off") == {}


ADAPTIVE = TEMPLATE.replace(
    "<|assistant|>{% endif %}",
    "<|assistant|>{% if thinking_mode == 'enabled' %}<think>{% elif thinking_mode == 'disabled' %}</think>"
    "{% endif %}{% endif %}",
)
OFF_BY_DEFAULT = TEMPLATE.replace(
    "<|assistant|>{% endif %}",
    "<|assistant|>{% if not enable_thinking %}<think></think>{% endif %}{% endif %}",
)


@pytest.mark.parametrize(
    ("template", "by_default", "tails"),
    [
        (ADAPTIVE, True, ("", "<think>", "</think>")),
        (OFF_BY_DEFAULT, False, ("<think></think>", "", "<think></think>")),
        (SWITCHED, True, ("", "", "<think></think>")),
    ],
)
def test_the_templates_own_default_is_kept_unless_thinking_is_switched(
    template: str, by_default: bool, tails: tuple[str, str, str], tmp_path: Path
) -> None:
    loaded = toy(tmp_path, template)
    assert (loaded.info.thinks, loaded.info.thinks_by_default) == (True, by_default)
    modes: tuple[ThinkingMode, ...] = ("auto", "on", "off")
    texts = (render(loaded.tokenizer, ASKED, thinking=mode).text for mode in modes)
    assert tuple(text.partition("<|assistant|>")[2] for text in texts) == tails


@pytest.mark.parametrize("opening", ["", "<think>"])
@pytest.mark.parametrize("apart", [False, True])
def test_a_thought_that_stays_in_the_content_has_the_tokens_of_the_answer(
    opening: str, apart: bool, tmp_path: Path
) -> None:
    template = (
        "{% for m in messages %}<|{{ m.role }}|>"
        "{% if preserve_thinking %}{{ m.content }}{% else %}{{ m.content.split('</think>')[-1] }}{% endif %}"
        "<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>OPENING{% endif %}"
    ).replace("OPENING", opening)
    tokenizer = toy(tmp_path, template).tokenizer
    written = "<think>\nwe see\n</think>\n\nso"[len(opening) :]
    if apart:
        written = "<think>we see\n</think>\n\nso"[len(opening) :] if opening else written
    past = Message("assistant", "so", thought="we see") if apart else Message("assistant", written)
    first = render(tokenizer, ASKED)
    second = render(tokenizer, (*ASKED, past, *ASKED))
    assert second.text.startswith(first.text + written + "<|end|>")
    begun = [*first.ids, *tokenizer.encode(written, add_special_tokens=False)]
    assert second.ids[: len(begun)] == begun
    # Tags in the text of an answer or a question are not control tokens.
    quoted = (Message("user", "<think>"), Message("assistant", f"{written} </think>"), *ASKED)
    ids = render(tokenizer, quoted).ids
    assert [ids.count(tokenizer.convert_tokens_to_ids(tag)) for tag in ("<think>", "</think>")] == (
        [2, 1] if opening else [1, 1]
    )
