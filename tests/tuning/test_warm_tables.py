"""Warm tables: a toy model with tables of its own, of another model, and after an interruption."""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
import msgspec
import pytest
from mlx.utils import tree_flatten

from core.engine.engine import Engine
from core.errors import RequestError
from core.events import Generate
from core.models.loader import load
from core.settings import Settings, assign_all
from tests.tuning import warm_tables
from tests.tuning.__main__ import parser
from tests.tuning.replay import COST_TABLES
from tests.tuning.warm_tables import (
    Edits,
    WarmPair,
    WarmRow,
    converse,
    read_edits,
    rounded_copy,
    rows_of,
    run,
    without_layer,
)


def options(tmp_path: Path, **values: object) -> argparse.Namespace:
    line = ["warm-tables", "--out", str(tmp_path / "out"), "--pairs", "1", "--max-tokens", "30"]
    chosen = parser().parse_args(line)
    return argparse.Namespace(**{**vars(chosen), "drafters": ("ngram-mod",), "quiet": True, **values})


def rows_in(tmp_path: Path) -> list[WarmRow]:
    _header, *lines = (tmp_path / "out" / "warm-tables.jsonl").read_bytes().splitlines()
    return list(rows_of([msgspec.json.decode(line, type=WarmPair) for line in lines]))


@pytest.mark.sweep
@pytest.mark.parametrize("drafter", ["ngram-mod", "auto"])
def test_cold_and_warm_with_a_toy(
    tmp_path: Path,
    toy_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    drafter: str,
) -> None:
    short = Edits("a.py", "a = 1\nb = 2\n", ("Hello hello hello.", "More."), ("Other.",))
    monkeypatch.setattr(warm_tables, "read_edits", lambda path: short)
    assert run(options(tmp_path, model=str(toy_folder), drafters=(drafter,))) == 0
    rows = rows_in(tmp_path)
    assert len(rows) == 4 * 3
    same = {row.turn: row for row in rows if row.warmed_by == "the same questions"}
    assert same[1].warm_accepted > same[1].cold_accepted
    assert same[1].steps_saved > 1.2
    assert all(row.equal for row in rows)
    report = capsys.readouterr().out
    assert "without layer 1" in report
    assert "of 8 bits a weight" in report


def test_a_stopped_conversation_goes_on_with_the_next_pair(
    tmp_path: Path, toy_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = Edits("a.py", "a = 1\nb = 2\n", ("Hello hello hello.",), ("Other.",))
    monkeypatch.setattr(warm_tables, "read_edits", lambda path: short)
    chosen = {"model": str(toy_folder)}
    run(options(tmp_path, **chosen, warmed_by=("same",)))
    pairs = tmp_path / "out" / "warm-tables.jsonl"
    first = pairs.read_bytes()
    taught = sorted((tmp_path / "out" / "warmed").rglob("*.safetensors"))
    times = [path.stat().st_mtime_ns for path in taught]
    run(options(tmp_path, **chosen, warmed_by=("same", "earlier"), pairs=2))
    assert pairs.read_bytes().startswith(first)
    assert pairs.read_bytes().count(b"\n") == 1 + 4
    assert times
    assert times == [path.stat().st_mtime_ns for path in taught]
    rows = rows_in(tmp_path)
    assert {(row.warmed_by, row.pairs) for row in rows} == {
        ("the same questions", 2),
        ("other questions", 2),
    }
    with pytest.raises(RequestError, match="other conditions"):
        run(options(tmp_path, **chosen, max_tokens=31))


@pytest.mark.sweep
def test_any_model_of_the_family_warms_the_table(
    toy_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = Edits("a.py", "a = 1\nb = 2\n", ("Hello hello hello.",), ("Other.",))
    monkeypatch.setattr(warm_tables, "read_edits", lambda path: short)
    other = without_layer(toy_folder, 1, tmp_path / "other")
    chosen = {"model": str(toy_folder), "warmed_by": (), "max_tokens": 8}
    run(options(tmp_path, **chosen, teacher=[str(other)]))
    rows = rows_in(tmp_path)
    assert {row.warmed_by for row in rows} == {f"the same questions, by {other}"}
    assert all(row.equal for row in rows)
    with pytest.raises(RequestError, match="has another tokenizer"):
        run(options(tmp_path, **chosen, teacher=["starter"]))


def test_a_copy_without_a_layer_is_of_the_family_and_says_other_things(
    toy_folder: Path, tmp_path: Path
) -> None:
    copy, whole = load(str(without_layer(toy_folder, 0, tmp_path / "copy"))), load(str(toy_folder))
    assert copy.info.family == whole.info.family
    assert copy.info.layers == whole.info.layers - 1
    kept = dict(copy.model.layers[0].parameters()["mlp"]["down_proj"])["weight"]
    assert bool((kept == whole.model.layers[1].mlp.down_proj.weight).all())


def test_a_rounded_copy_is_of_the_family_and_nearly_the_same(toy_folder: Path, tmp_path: Path) -> None:
    whole = load(str(toy_folder))
    copies = {bits: load(str(rounded_copy(toy_folder, bits, tmp_path / str(bits)))) for bits in (8, 4)}
    exact, fine, coarse = (each.model.layers[0].mlp.down_proj.weight for each in (whole, *copies.values()))
    assert {copy.info.family for copy in copies.values()} == {whole.info.family}
    assert 0 < abs(fine - exact).max().item() < abs(coarse - exact).max().item() / 4
    assert coarse.dtype == exact.dtype


def test_a_rounded_copy_of_packed_weights(toy_folder: Path, tmp_path: Path) -> None:
    """As in the starter's folder, 4 bits and 8 for embeddings; the copy's are plain, and nearly the same."""
    fine = {"group_size": 32, "bits": 8}
    whole = load(str(toy_folder)).model

    def bits(path: str, module: nn.Module) -> bool | dict[str, int]:
        return fine if "embed" in path else hasattr(module, "to_quantized")

    nn.quantize(whole, 32, 4, class_predicate=bits)
    mx.save_safetensors(str(tmp_path / "model.safetensors"), dict(tree_flatten(whole.parameters())))
    config = json.loads((toy_folder / "config.json").read_text())
    packed = {"group_size": 32, "bits": 4, "model.embed_tokens": fine}
    (tmp_path / "config.json").write_text(json.dumps({**config, "quantization": packed}))
    for path in toy_folder.glob("tokenizer*"):
        shutil.copy(path, tmp_path)
    before = load(str(tmp_path)).model
    after = load(str(rounded_copy(tmp_path, 8, tmp_path / "copy"))).model
    for of in (lambda model: model.layers[0].mlp.down_proj, lambda model: model.model.embed_tokens):
        assert not hasattr(of(after), "scales")
        assert abs(of(after).weight - of(before).weight).max() < 0.01 * abs(of(before).weight).max()
    assert (after.layers[0].mlp.down_proj.weight != before.layers[0].mlp.down_proj.weight).any()


def test_the_shipped_conversation_has_four_turns() -> None:
    edits = read_edits()
    assert len(edits.turns) == len(edits.earlier) == 4
    compile(edits.file, edits.name, "exec")
    alone = read_edits(Path(warm_tables.__file__).with_name("list.json"))
    assert alone.turns
    assert not alone.file


def test_a_text_is_shown_with_the_first_request_only(toy_folder: Path) -> None:
    """Shown by the prompts that reach the engine."""
    engine = Engine()
    engine.load(str(toy_folder))
    asked: list[Generate] = []
    own = engine.generate
    engine.generate = lambda request: (asked.append(request), own(request))[1]  # type: ignore[method-assign, assignment]
    settings = assign_all(Settings(), [("sampling.max_tokens", 2)])
    for edits in (Edits("a.py", "a = 1\n", ("Hello.", "More."), ()), Edits("", "", ("Hello.",), ())):
        list(converse(engine, edits, edits.turns, settings, COST_TABLES["cpu"]))
    first, second, bare = (request.messages for request in asked)
    assert first[0].content == "This is the file a.py:\n\n```python\na = 1\n```\n\nHello."
    assert [message.content for message in second][0::2] == [first[0].content, "More."]
    assert [message.content for message in bare] == ["Hello."]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read"),
        ('{"turns": 3}', "no conversation"),
        ('{"name": "", "file": "", "turns": [], "earlier": []}', "has no requests"),
        ('{"name": "", "file": "", "turns": ["a"], "earlier": [], "answers": []}', "answers"),
    ],
)
def test_a_conversation_that_is_none_is_named(tmp_path: Path, content: str | None, words: str) -> None:
    path = tmp_path / "talk.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(RequestError, match=words) as caught:
        read_edits(path)
    assert "talk.json" in caught.value.message
