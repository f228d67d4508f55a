"""Heads of models that see: what any head drafts behind images, the answer is that of a cold plain start."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest

from core.engine.engine import Engine
from core.events import Image, Message
from tests.core import published_heads
from tests.core.architectures import build
from tests.core.engine.seeing_chats import answered, asked, cold, settings_of
from tests.core.headed_models import PREFIX, raw_head
from tests.core.published_heads import BLOCKS, EAGLES, head_folder, model_config, write_head
from tests.core.seeing import PROCESSORS, VOCABULARY, config_of, write_seeing_model, write_seeing_tokenizer
from tests.thinned import thinned

MTP = "mtp"
# The family of the model, and the head.
HEADS = (("qwen3_5", MTP), ("qwen3_5", "eagle3-numbered"), ("gemma4 both ways", "gemma4"),
         ("qwen3_5", "dflash-windows"), ("gemma4", "gemma4"))  # fmt: skip


def _write(folder: Path, family: str, head: str) -> None:
    """A model that sees in `folder`, with a head of random weights in it or beside it."""
    config = config_of(family)
    if head == MTP:
        raw = raw_head("qwen3_5", build(config, 1.6))
        write_seeing_model(folder, family)
        config["text_config"]["mtp_num_hidden_layers"] = 1
        (folder / "config.json").write_text(json.dumps(config))
        tensors = {PREFIX["qwen"] + name: mx.array(value) for name, value in raw.items()}
        mx.save_safetensors(str(folder / "mtp.safetensors"), tensors)
        return
    inner = config["text_config"]
    if head in EAGLES or head in BLOCKS:
        inner["num_hidden_layers"] = model_config(head)["num_hidden_layers"]
    else:  # an assistant attends to keys of the model, whose sizes are in its own configuration
        own = model_config(head)
        inner |= {**own, "use_bidirectional_attention": inner.get("use_bidirectional_attention")}
    write_seeing_model(folder, family, sized=(config, PROCESSORS[family]))
    write_head(head_folder(folder), head)
    write_seeing_tokenizer(head_folder(folder), family)


@pytest.fixture(params=thinned(HEADS, keep=HEADS[:1]), ids="-".join)
def headed(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Engine]:
    monkeypatch.setattr(published_heads, "VOCABULARY", VOCABULARY)
    sizes = {"vocab_size": VOCABULARY, "vocab_size_per_layer_input": VOCABULARY}
    monkeypatch.setattr(published_heads, "_GEMMA4", {**published_heads._GEMMA4, **sizes})
    family, head = request.param
    _write(tmp_path / "model", family, head)
    engine = Engine()
    engine.load(str(tmp_path / "model"))
    engine.loaded.eos = frozenset()
    engine.try_out()
    yield engine
    engine.unload()


@pytest.mark.usefixtures("unlikely_guesses")
def test_a_head_drafts_behind_images(headed: Engine, pictures: tuple[Image, ...]) -> None:
    """Over two turns, an edit and the same question again, read in chunks that divide images."""
    short: dict[str, Any] = {"sampling.max_tokens": 24, "prefill.chunk_tokens": 32}
    plain, drafted = settings_of(**short), settings_of(MTP, **short)
    first = [asked("What is it?", pictures[1])]
    later = [*first, Message("assistant", "Yes."), asked("And this?", pictures[0])]
    talks = [first, later, [asked("Which is it?", pictures[1], pictures[2])], first]
    expected = [cold(headed, talk, plain) for talk in talks]
    headed.forget(tables=True)
    for talk, wanted in zip(talks, expected):
        found, finished = answered(headed, talk, drafted)
        assert found == wanted
        assert finished.stats.drafted > 0
        assert not finished.effective.changes
