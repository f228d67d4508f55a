"""Chat templates in other places of a folder, none at all, and names that this mlx-lm does not have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import reason_of
from core.events import Message
from core.folders.folder import has_template
from core.models.loader import load
from core.prompt import render
from tests.core.toy import TEMPLATE, write_toy_model

HELLO = (Message("user", "hello"),)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model without a chat template."""
    write_toy_model(tmp_path / "model")
    change(tmp_path / "model", chat_template=None)
    return tmp_path / "model"


def change(folder: Path, **fields: Any) -> None:
    path = folder / "tokenizer_config.json"
    kept = {**json.loads(path.read_text()), **fields}
    path.write_text(json.dumps({key: value for key, value in kept.items() if value is not None}))


def test_a_template_only_in_chat_template_json_is_used(folder: Path) -> None:
    (folder / "chat_template.json").write_text(json.dumps({"chat_template": TEMPLATE}))
    model = load(str(folder))
    prompt = render(model.tokenizer, HELLO)
    change(folder, chat_template=TEMPLATE)
    assert prompt.ids == render(load(str(folder)).tokenizer, HELLO).ids
    assert (prompt.changes, model.info.defaults_problem, has_template(folder)) == ((), "", True)
    # The folder's other places come first.
    (folder / "chat_template.json").write_text(json.dumps({"chat_template": "other"}))
    assert prompt.ids == render(load(str(folder)).tokenizer, HELLO).ids


@pytest.mark.parametrize("damaged", [None, "[]", "{", '{"chat_template": 3}'])
def test_an_answer_without_any_template_says_so(folder: Path, damaged: str | None) -> None:
    if damaged is not None:
        (folder / "chat_template.json").write_text(damaged)
    [change] = render(load(str(folder)).tokenizer, HELLO).changes
    assert (change.setting, change.used) == ("chat template", "none")
    assert has_template(folder) == (damaged is not None)


@pytest.mark.sweep
@pytest.mark.parametrize("key", ["chat_template_type", "tool_parser_type"])
@pytest.mark.parametrize("name", ["of_next_year", "../evil", "a.b", 5])
@pytest.mark.parametrize("place", ["chat_template.jinja", "tokenizer_config.json"])
def test_names_that_this_mlx_lm_does_not_have_are_ignored_and_named(
    folder: Path, key: str, name: object, place: str
) -> None:
    change(folder, **{key: name})
    if place == "chat_template.jinja":
        (folder / place).write_text(TEMPLATE)
    else:
        change(folder, chat_template=TEMPLATE)
    model = load(str(folder))
    assert render(model.tokenizer, HELLO).text.count("hello") == 1
    assert render(model.tokenizer, HELLO).changes == ()
    assert f"{key} “{name}”" in model.info.defaults_problem
    change(folder, **{key: None})
    assert load(str(folder)).info.defaults_problem == ""


def test_a_list_of_missing_tensors_keeps_their_names() -> None:
    error = ValueError("Missing 2 parameters: \nmodel.a.weight,\nmodel.b.weight.")
    assert reason_of(error) == "Missing 2 parameters: model.a.weight, model.b.weight"
    assert reason_of(ValueError("No.\nMore.")) == "No"
