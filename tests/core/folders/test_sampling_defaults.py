"""What a model's generation_config.json gives as defaults: read by its own rules, held to our bounds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.events import ModelDefault
from core.folders.generation_config import FILE, sampling_defaults
from core.models.loader import load
from core.settings import Settings
from tests.core.toy import write_toy_model


def given(folder: Path, **said: Any) -> dict[str, float]:
    (folder / FILE).write_text(json.dumps(said))
    defaults, problem = sampling_defaults(folder)
    assert problem == ""
    return {each.key.partition(".")[2]: each.value for each in defaults}


def test_without_a_file_ours_stand(tmp_path: Path) -> None:
    assert sampling_defaults(tmp_path) == ((), "")


def test_what_the_file_says_is_taken(tmp_path: Path) -> None:
    said = {"temperature": 0.6, "top_p": 0.95, "top_k": 20, "min_p": 0.05, "repetition_penalty": 1.05}
    said["frequency_penalty"] = 0.4
    assert given(tmp_path, do_sample=True, eos_token_id=[1, 2], **said) == said


def test_its_rules_are_those_of_transformers(tmp_path: Path) -> None:
    assert given(tmp_path, do_sample=False, temperature=0.7, top_p=0.9) == {"temperature": 0.0, "top_p": 0.9}
    assert given(tmp_path, do_sample=True, top_k=64) == {"temperature": 1.0, "top_k": 64}
    assert given(tmp_path, temperature=0.7) == {"temperature": 0.7}
    assert given(tmp_path, top_p=0.9) == {"top_p": 0.9}
    assert given(tmp_path, temperature=None, top_k=-1) == {"top_k": 0}
    assert given(tmp_path, max_length=20) == {}


def test_what_is_not_allowed_is_moved_and_what_was_given_is_known(tmp_path: Path) -> None:
    said = {"temperature": 5, "top_p": 0, "top_k": 20_000, "repetition_penalty": 0.1, "min_p": 3}
    (tmp_path / FILE).write_text(json.dumps(said))
    defaults, problem = sampling_defaults(tmp_path)
    assert problem == ""
    assert defaults == (
        ModelDefault("sampling.temperature", 2.0, 5),
        ModelDefault("sampling.top_p", 0.01, 0),
        ModelDefault("sampling.min_p", 1.0, 3),
        ModelDefault("sampling.top_k", 1000, 20_000),
        ModelDefault("sampling.repetition_penalty", 0.5, 0.1),
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ("[]", "holds no object"),
        (
            '{"temperature": "hot", "top_p": true, "top_k": 1e400, "min_p": NaN}',
            "temperature, top_p, min_p, top_k",
        ),
        (f'{{"top_k": {"9" * 400}}}', "no number for top_k"),
    ],
)
def test_what_is_no_use_is_said_and_the_rest_holds(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / FILE).write_text(text)
    defaults, problem = sampling_defaults(tmp_path)
    assert defaults == ()
    assert words in problem


def test_a_loaded_model_carries_them(tmp_path: Path) -> None:
    write_toy_model(tmp_path)
    assert load(str(tmp_path)).info.settings == Settings()
    (tmp_path / FILE).write_text('{"temperature": 0.6, "top_k": 20, "top_p": []}')
    info = load(str(tmp_path)).info
    assert (info.settings.sampling.temperature, info.settings.sampling.top_k) == (0.6, 20)
    assert info.settings.sampling.top_p == 1.0
    assert info.defaults_problem == "generation_config.json gives no number for top_p."
