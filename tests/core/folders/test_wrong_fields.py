"""Values of a wrong type in config.json: the model loads, or the message names the file and the field."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.errors import ModelError
from core.models.loader import load
from tests.core.headed_models import CONFIGS, write_headed_model
from tests.core.published_heads import OTHERS, write_drafted_model
from tests.thinned import thinned

MOST = 12  # changes of a config


def fields(config: dict[str, Any], outer: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in config.items():
        if isinstance(value, dict):
            yield from fields(value, (*outer, name))
        else:
            yield (*outer, name), value


def others(value: object) -> list[object]:
    """Values of other types that a hand-written config has."""
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, int):
        return [float(value), str(value)]
    return [str(value)] if isinstance(value, float) else [3]


def problem(folder: Path) -> str:
    """Why the model cannot be loaded; empty if it can."""
    try:
        load(str(folder))
    except ModelError as error:
        return f"{error.message} {error.hint}"
    return ""


@pytest.mark.parametrize("name", thinned((*CONFIGS, *OTHERS), keep=("qwen3_5_moe", "deepseek_v3", "mimo")))
def test_a_value_of_another_type_is_named(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path / "home"))
    folder = tmp_path / "Tiny"
    (write_headed_model if name in CONFIGS else write_drafted_model)(folder, name)
    whole = (folder / "config.json").read_text("utf-8")
    changes = [(path, new) for path, value in fields(json.loads(whole)) for new in others(value)]
    refused = 0
    for path, new in random.Random(name).sample(changes, min(MOST, len(changes))):
        config = inner = json.loads(whole)
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = new
        (folder / "config.json").write_text(json.dumps(config), "utf-8")
        message = problem(folder)
        refused += bool(message)
        assert not message or (path[-1] in message and "config.json" in message), (path, new, message)
        assert "tokenizer files" not in message
    assert refused
