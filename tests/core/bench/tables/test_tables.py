"""The tables bench: what it says of a few short streams, and of a toy model."""

from __future__ import annotations

import argparse
import json
import random
import shutil
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
import msgspec
import pytest
from mlx.utils import tree_flatten

from core.bench import runs
from core.bench.pieces import BenchPiece, E
from core.bench.replay.cost_table import cost_table
from core.bench.tables import table_conversation, table_replay, table_timing, tables
from core.bench.tables.table_conversation import Edits, converse, read_edits
from core.bench.tables.table_learned import configurations
from core.bench.tables.table_report import TableResults
from core.bench.tables.tables import run
from core.bench.truncated import rounded_copy, without_layers
from core.cli.bench.tables import add_arguments as tables_arguments
from core.drafting.follower_tables import FrozenTable
from core.engine.engine import Engine
from core.errors import RequestError
from core.events import Generate
from core.models.loader import load
from core.rehearsal.streams import Stream, write_streams
from core.settings import Settings, assign, assign_all
from core.tables.gram_count import GramCounter, Pruning
from core.tables.prebuilt import built_dir, texts_path
from core.tables.prebuilt_files import save_frozen, save_grams

RNG = random.Random(4)
STREAMS = [
    Stream([RNG.randrange(900) for _ in range(60)], [RNG.randrange(900) for _ in range(60)]) for _ in range(4)
]


def options(tmp_path: Path, **values: object) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    tables_arguments(parser)
    chosen = parser.parse_args(["--out", str(tmp_path / "out"), "--pairs", "1", "--max-tokens", "30"])
    return argparse.Namespace(
        **{**vars(chosen), "parts": ("timing",), "drafters": ("ngram-mod",), "quiet": True, **values}
    )


def measured(pieces: list[BenchPiece[E]]) -> list[E]:
    return [piece.measure() for piece in pieces]


def test_a_return_is_faster_where_the_table_still_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_replay, "SIZES", (2**12, 2**16))
    monkeypatch.setattr(table_replay, "LOADS", (0, 20_000))
    rows = measured(table_replay.table_sizes(STREAMS, cost_table("cpu")))
    small, large, crowded, roomy = rows
    assert large.again > 2 * large.first
    assert roomy.again > crowded.again
    assert crowded.overwrites > roomy.overwrites
    assert small.other_tokens == 0


def test_poison_costs_and_heals() -> None:
    rows = {
        (row.drafter, row.poison): row for row in measured(table_replay.poison(STREAMS, [cost_table("cpu")]))
    }
    mod = rows["ngram-mod", "every slot of its table"]
    assert mod.each < mod.clean
    trusting = rows["auto", "a calibration that trusts everything"]
    assert trusting.each <= trusting.once
    wary = rows["auto", "every slot of the n-gram table"]
    assert wary.each >= 0.95 * wary.clean
    assert wary.once >= 0.95 * wary.clean


def test_frozen_tables_come_from_the_other_half() -> None:
    repeated = [Stream([1, 2, 3, i], [7, 8, 9] * 6) for i in range(10, 14)]
    rows = {row.mode: row for row in measured(table_replay.frozen_modes(repeated, [cost_table("cpu")], {}))}
    assert rows["frozen"].mean_per_step > 2
    assert rows["dual"].mean_per_step >= rows["dynamic"].mean_per_step


def test_frozen_tables_from_files_are_asked(tmp_path: Path) -> None:
    said = Stream([1, 2, 3, 4], [21, 22, 23, 24, 25, 26] * 4)
    paths = []
    for name, text in (("knows", said.out), ("other", list(range(100, 130)))):
        held = FrozenTable.build(
            [text], leader_tokens=2, follower_tokens=3, leader_capacity=99, follower_capacity=9
        )
        paths.append(tmp_path / f"{name}.safetensors")
        save_frozen(held, paths[-1], family="a" * 64, family_name="A", learned_from="a test")
    knows, other = (table_replay.frozen_tables([path]) for path in paths)
    assert list(knows) == [(2, 3)]
    rows = [
        table_replay.frozen_lengths([said], [cost_table("cpu")], given)[0].measure()
        for given in (knows, other)
    ]
    assert (rows[0].leader_tokens, rows[0].follower_tokens) == (2, 3)
    assert rows[0].mean_per_step > rows[1].mean_per_step


def test_the_parts_on_streams_write_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(table_replay, "SIZES", (2**12,))
    monkeypatch.setattr(table_replay, "LOADS", (0,))
    monkeypatch.setattr(table_replay, "LEADERS", (1,))
    monkeypatch.setattr(table_replay, "FOLLOWERS", (2, 3))
    monkeypatch.setattr(table_timing, "_ENTRIES", 2000)
    monkeypatch.setattr(table_timing, "_REPEATS", 1)
    path = tmp_path / "s.jsonl.gz"
    write_streams(path, STREAMS)
    chosen = options(tmp_path, streams=path, parts=("sizes", "cacheback", "poison", "timing"))
    assert run(chosen) == 0
    results = msgspec.json.decode((tmp_path / "out" / "results.json").read_bytes(), type=TableResults)
    assert (len(results.sizes), len(results.modes), len(results.lengths)) == (1, 9, 6)
    assert len(results.poison) == 8
    assert results.timing[0].entries >= 2000
    report = capsys.readouterr().out
    for title in ("Table size", "Cacheback", "LL × FL", "Poison", "Saving and loading"):
        assert title in report


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
    monkeypatch.setattr(tables, "read_edits", lambda path: short)
    assert run(options(tmp_path, model=str(toy_folder), parts=("conversation",), drafters=(drafter,))) == 0
    results = msgspec.json.decode((tmp_path / "out" / "results.json").read_bytes(), type=TableResults)
    assert len(results.conversation) == 4 * 3
    same = {row.turn: row for row in results.conversation if row.warmed_by == "the same questions"}
    assert same[1].warm_accepted > same[1].cold_accepted
    assert same[1].steps_saved > 1.2
    assert all(row.equal for row in results.conversation)
    report = capsys.readouterr().out
    assert "without layer 1" in report
    assert "of 8 bits a weight" in report


def test_a_stopped_conversation_goes_on_with_the_next_pair(
    tmp_path: Path, toy_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = Edits("a.py", "a = 1\nb = 2\n", ("Hello hello hello.",), ("Other.",))
    monkeypatch.setattr(tables, "read_edits", lambda path: short)
    chosen = {"model": str(toy_folder), "parts": ("conversation",)}
    run(options(tmp_path, **chosen, warmed_by=("same",)))
    pairs = tmp_path / "out" / "conversation.jsonl"
    first = pairs.read_bytes()
    taught = sorted((tmp_path / "out" / "warmed").rglob("*.safetensors"))
    times = [path.stat().st_mtime_ns for path in taught]
    run(options(tmp_path, **chosen, warmed_by=("same", "earlier"), pairs=2))
    assert pairs.read_bytes().startswith(first)
    assert pairs.read_bytes().count(b"\n") == 1 + 4
    assert times
    assert times == [path.stat().st_mtime_ns for path in taught]
    results = msgspec.json.decode((tmp_path / "out" / "results.json").read_bytes(), type=TableResults)
    assert {(row.warmed_by, row.pairs) for row in results.conversation} == {
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
    monkeypatch.setattr(tables, "read_edits", lambda path: short)
    other = without_layers(toy_folder, {1}, tmp_path / "other")
    chosen = {"model": str(toy_folder), "parts": ("conversation",), "warmed_by": (), "max_tokens": 8}
    run(options(tmp_path, **chosen, teacher=[str(other)]))
    results = msgspec.json.decode((tmp_path / "out" / "results.json").read_bytes(), type=TableResults)
    assert {row.warmed_by for row in results.conversation} == {f"the same questions, by {other}"}
    assert all(row.equal for row in results.conversation)
    with pytest.raises(RequestError, match="has another tokenizer"):
        run(options(tmp_path, **chosen, teacher=["starter"]))


def test_tables_learned_beforehand_in_real_decoding(
    tmp_path: Path, toy_engine: Engine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path / "home"))
    info = toy_engine.loaded.info
    prompts = [[5, 6, 7], [8, 9, 10], [11, 12, 13]]
    short = assign(Settings(), "sampling.max_tokens", 30)
    answers = [runs.draftlight(toy_engine, ids, short).tokens for ids in prompts]
    path = tmp_path / "s.jsonl.gz"
    write_streams(path, [Stream(ids, out, kind) for ids, out, kind in zip(prompts, answers, "aab")])
    chosen = options(tmp_path, model=info.path, streams=path, parts=("learned",))
    with pytest.raises(RequestError, match="no frozen table"):
        run(chosen)
    held = FrozenTable.build(
        answers, leader_tokens=1, follower_tokens=3, leader_capacity=999, follower_capacity=9
    )
    place = built_dir() / "toy.frozen.safetensors"
    save_frozen(held, place, family=info.family, family_name=info.family_name, learned_from="a test")
    counter = GramCounter()
    counter.add((), answers[0])
    whose = {"family": info.family, "family_name": info.family_name, "learned_from": "a test"}
    save_grams(counter.table(Pruning()), texts_path(info.family_name), **whose)
    chosen.each = 1
    assert run(chosen) == 0
    results = msgspec.json.decode((tmp_path / "out" / "results.json").read_bytes(), type=TableResults)
    rows = {(row.configuration, row.kind): row for row in results.learned}
    assert {row.prompts for (_, kind), row in rows.items() if kind == "all"} == {2}
    assert len(rows) == 7 * 3
    asked = {
        name: (settings.auto.learned, settings.auto.texts)
        for name, settings in configurations(info, 30).items()
        if name.startswith("auto")
    }
    assert asked == {
        "auto, no table": (False, False),
        "auto, rehearsed": (True, False),
        "auto, texts": (False, True),
        "auto, both": (True, True),
    }
    assert rows["plain", "all"].speed_up == 1.0
    assert rows["cacheback, texts", "all"].mean_per_step > rows["cacheback, no table", "all"].mean_per_step
    assert all(row.equal for row in results.learned)
    assert "Tables learned beforehand" in capsys.readouterr().out
    before = (tmp_path / "out" / "learned.jsonl").read_bytes()
    chosen.each = 2
    assert run(chosen) == 0
    after = (tmp_path / "out" / "learned.jsonl").read_bytes()
    assert after.startswith(before)
    assert after.count(b"\n") == 1 + 3


def test_a_copy_without_a_layer_is_of_the_family_and_says_other_things(
    toy_folder: Path, tmp_path: Path
) -> None:
    copy, whole = load(str(without_layers(toy_folder, {0}, tmp_path / "copy"))), load(str(toy_folder))
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
    alone = read_edits(table_conversation.resources_dir() / "bench" / "list.json")
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
        list(converse(engine, edits, edits.turns, settings, cost_table("cpu")))
    first, second, bare = (request.messages for request in asked)
    assert first[0].content == "This is the file a.py:\n\n```python\na = 1\n```\n\nHello."
    assert [message.content for message in second][0::2] == [first[0].content, "More."]
    assert [message.content for message in bare] == ["Hello."]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "could not be read"),
        ('{"turns": 3}', "no conversation"),
        ('{"name": "", "file": "", "turns": [], "earlier": []}', "asks nothing"),
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
