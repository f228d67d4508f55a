"""Thinking, switched by the chat template where that knows the switch, and said where it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.engine.engine import Engine
from core.events import Change, Finished, Generate, Message
from core.models.loader import LoadedModel, load
from core.models.prompt import render
from core.settings import Settings, assign_all
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
    thinking, at_once = (render(loaded.tokenizer, ASKED, thinking=wanted) for wanted in (True, False))
    assert thinking.text.endswith("<|assistant|>")
    assert at_once.text.endswith("<|assistant|><think></think>")
    assert not thinking.changes
    assert not at_once.changes


def test_a_model_that_thinks_and_has_no_switch_says_so(tmp_path: Path) -> None:
    loaded = toy(tmp_path, TEMPLATE)
    assert not loaded.info.thinks
    assert render(loaded.tokenizer, ASKED, thinking=False).changes == (
        Change("chat.thinking", "off", "on", "the model's chat template has no switch for it"),
    )
    assert render(loaded.tokenizer, ASKED).changes == ()


def test_a_model_that_never_thinks_has_nothing_to_say(tmp_path: Path) -> None:
    loaded = toy(tmp_path, TEMPLATE, tags=False)
    assert not loaded.info.thinks
    assert render(loaded.tokenizer, ASKED, thinking=False).changes == ()


def test_the_answer_follows_the_setting_and_says_what_it_could_not(tmp_path: Path) -> None:
    engine = Engine()
    off = assign_all(
        Settings(), [("chat.thinking", False), ("sampling.max_tokens", 3), ("drafting.drafter", "off")]
    )

    def answered(template: str, settings: Settings, name: str) -> Finished:
        engine.use(toy(tmp_path / name, template))
        *_, last = engine.generate(Generate("r", ASKED, settings))
        assert isinstance(last, Finished)
        return last

    on = assign_all(off, [("chat.thinking", True)])
    at_once, thinking = answered(SWITCHED, off, "a"), answered(SWITCHED, on, "b")
    assert at_once.stats.prompt_tokens == thinking.stats.prompt_tokens + 2
    assert not at_once.effective.settings.chat.thinking
    assert at_once.effective.changes == ()
    changes = answered(TEMPLATE, off, "c").effective.changes
    assert [change.setting for change in changes] == ["chat.thinking"]
    engine.close()
