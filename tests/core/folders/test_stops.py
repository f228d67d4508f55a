"""Stop ids: every source that names one, values that are not ids, and answers that end on them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from core.engine.engine import Engine
from core.events import Finished, Token
from core.models.loader import load
from core.settings import Settings, assign
from tests.core.toy import toy_config

ORDINARY = 70
GENERATION_CONFIG = "generation_config.json"


@pytest.fixture
def folder(toy_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(toy_folder, tmp_path / "model"))


def configure(folder: Path, **changes: Any) -> None:
    config = {key: value for key, value in toy_config().items() if key != "eos_token_id"}
    (folder / "config.json").write_text(json.dumps({**config, **changes}))


def generation_config(folder: Path, eos: object) -> None:
    (folder / GENERATION_CONFIG).write_text(json.dumps({"eos_token_id": eos}))


def add_tokens(folder: Path, *texts: str, rows: int = 260) -> None:
    """Rename ordinary tokens of the end of the vocabulary, so that they have rows."""
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text())
    vocabulary = content["model"]["vocab"]
    for back, text in enumerate(texts, 1):
        old = next(token for token, at in vocabulary.items() if at == rows - back)
        del vocabulary[old]
        vocabulary[text] = rows - back
    path.write_text(json.dumps(content))
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.add_special_tokens(list(texts))
    tokenizer.save(str(path))


@pytest.mark.parametrize(
    ("config", "generation", "expected"),
    [
        ({}, None, {0}),
        ({"eos_token_id": ORDINARY}, None, {0, ORDINARY}),
        ({"eos_token_id": [ORDINARY, 3]}, None, {0, 3, ORDINARY}),
        ({}, ORDINARY, {0, ORDINARY}),
        ({}, [ORDINARY, 3], {0, 3, ORDINARY}),
        ({"text_config": {"eos_token_id": ORDINARY}}, None, {0, ORDINARY}),
        ({"text_config": {"eos_token_id": [ORDINARY, 3]}}, None, {0, 3, ORDINARY}),
        ({"eos_token_id": None}, None, {0}),
        # A file of lower rank adds control tokens only.
        ({"eos_token_id": [2, 90]}, ORDINARY, {0, 2, ORDINARY}),
        ({"eos_token_id": ORDINARY, "text_config": {"eos_token_id": [2, 90]}}, None, {0, 2, ORDINARY}),
    ],
)
def test_each_source_counts(
    folder: Path, config: dict[str, Any], generation: object, expected: set[int]
) -> None:
    configure(folder, **config)
    if generation is not None:
        generation_config(folder, generation)
    loaded = load(str(folder))
    assert loaded.eos == expected
    assert loaded.tokenizer.eos_token_ids == expected
    assert not loaded.info.defaults_problem


@pytest.mark.parametrize("source", ["config", "text_config", "generation"])
@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (260, "has 260, which"),
        ([ORDINARY, 70_000], "has 70,000, which"),
        (-1, "has -1, which"),
        ("<|end|>", "has '<|end|>', which"),
        ([None, True, 2.5, [3], {}], "has None, True, 2.5, [3], {}, which"),
        ({"a": "b" * 100}, "…, which"),
        (10**400, "…, which"),
    ],
)
def test_what_is_not_an_id_is_ignored_and_reported(
    folder: Path, source: str, bad: object, words: str
) -> None:
    configure(
        folder,
        **{"config": {"eos_token_id": bad}, "text_config": {"text_config": {"eos_token_id": bad}}}.get(
            source, {}
        ),
    )
    if source == "generation":
        generation_config(folder, bad)
    loaded = load(str(folder))
    assert loaded.eos == ({0, ORDINARY} if isinstance(bad, list) and ORDINARY in bad else {0})
    assert words in loaded.info.defaults_problem
    assert source.removesuffix("_config") in loaded.info.defaults_problem


@pytest.mark.parametrize("text", ["[]", "{", "\udcff", '"eos"', "null", "3"])
def test_a_damaged_generation_config_does_not_stop_loading(folder: Path, text: str) -> None:
    (folder / GENERATION_CONFIG).write_bytes(text.encode("utf-8", "surrogateescape"))
    loaded = load(str(folder))
    assert loaded.eos == {0}
    assert GENERATION_CONFIG in loaded.info.defaults_problem


def test_control_tokens_that_end_a_turn(folder: Path) -> None:
    add_tokens(folder, "<|eom_id|>", "<|call|>", "<end_of_turn>", "<|strange|>")
    assert load(str(folder)).eos == {0, 259, 258, 257}


@pytest.mark.parametrize("mark", ["<|channel|>", "<|message|>", "<|content|>", "<|begin|>"])
def test_the_end_of_a_message_is_not_the_end_of_an_answer_that_has_several(folder: Path, mark: str) -> None:
    add_tokens(folder, "<|return|>", "<|call|>", mark, "<|eom|>")
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "eos_token": "<|return|>"}))
    configure(folder)
    assert load(str(folder)).eos == {259, 258}


@pytest.mark.parametrize("place", ["config", "text_config", "generation"])
def test_an_answer_stops_on_it(folder: Path, place: str) -> None:
    settings = assign(assign(Settings(), "sampling.max_tokens", 24), "sampling.temperature", 0.0)
    prompt = list(range(60, 90))

    def answer() -> tuple[list[int], str]:
        engine = Engine()
        engine.load(str(folder))
        events = list(engine.generate_ids(prompt, settings))
        engine.close()
        finished = events[-1]
        assert isinstance(finished, Finished)
        return [each.id for each in events if isinstance(each, Token)], finished.reason

    configure(folder)
    tokens, _ = answer()
    stop = tokens[5]
    if place == "generation":
        generation_config(folder, [stop])
    else:
        configure(
            folder, **({"eos_token_id": stop} if place == "config" else {place: {"eos_token_id": stop}})
        )
    stopped, reason = answer()
    assert reason == "stop"
    assert stopped == tokens[: tokens.index(stop) + 1]
