"""Tables through the engine and the worker: warm starts, privacy, two models, saving beside decoding."""

from __future__ import annotations

import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.drafting.registry import DRAFTERS, Resources
from core.engine.engine import Engine
from core.events import (
    ExportTable,
    Failed,
    Finished,
    Gauges,
    ImportTable,
    ListTables,
    LoadModel,
    LoadTables,
    ModelLoaded,
    ResetTable,
    SaveTables,
    TableDone,
    TableList,
    TableStatus,
    Token,
)
from core.settings import Settings, assign_all
from core.system.paths import tables_dir
from core.tables.files import TableFolder
from core.tables.memory import TableMemory
from core.tables.prebuilt import GRAMS, built_dir, save_grams
from tests.core.decoding.test_loop import prompt_with_repetition
from tests.core.tables.support import files
from tests.core.toy import write_toy_model
from tests.core.worker.test_worker import ask, run, worker
from tests.tuning.gram_count import GramCounter, Pruning

PROMPT = prompt_with_repetition(random.Random(0))
MOD = assign_all(
    Settings(),
    [
        ("drafting.drafter", "ngram-mod"),
        ("gate.mode", "always"),
        ("ngram_mod.n", 4),
        ("ngram_mod.slots", 2**12),
        ("sampling.max_tokens", 60),
    ],
)


def engine_on(folder: Path, model: Path, said: list[TableStatus] | None = None) -> Engine:
    engine = Engine(TableMemory(TableFolder(folder), (said if said is not None else []).append))
    engine.load(str(model))
    return engine


def answer(engine: Engine, settings: Settings = MOD) -> tuple[list[int], Finished]:
    engine.forget()
    events = list(engine.generate_ids(PROMPT, settings))
    finished = events[-1]
    assert isinstance(finished, Finished)
    return [event.id for event in events if isinstance(event, Token)], finished


@pytest.fixture
def other_model(tmp_path: Path) -> Path:
    """Other weights, the same tokenizer."""
    write_toy_model(tmp_path / "other", seed=5)
    return tmp_path / "other"


def test_a_warm_start_drafts_what_another_run_wrote(tmp_path: Path, toy_folder: Path) -> None:
    said: list[TableStatus] = []
    engine = engine_on(tmp_path / "t", toy_folder, said)
    cold, finished = answer(engine)
    assert [status.moment for status in said] == ["cold", "learned"]
    engine.close()
    again = engine_on(tmp_path / "t", toy_folder, said)
    warm, finished_warm = answer(again)
    assert warm == cold
    assert finished_warm.stats.accepted > finished.stats.accepted + 20
    assert said[-1].tables[0].figures.accepted == finished.stats.accepted + finished_warm.stats.accepted
    again.close()


def test_a_model_of_the_family_profits_from_another(
    tmp_path: Path, toy_folder: Path, other_model: Path
) -> None:
    engine = engine_on(tmp_path / "t", toy_folder)
    answer(engine)
    used = engine.memory.listing()[0][0].figures.used
    engine.load(str(other_model))
    assert engine.memory.listing()[0][0].figures.used == used, "both are of one family"
    answer(engine)
    assert engine.memory.listing()[0][0].figures.used > used
    engine.close()


def test_auto_remembers_what_another_chat_said(tmp_path: Path, toy_folder: Path) -> None:
    chosen = assign_all(MOD, [("drafting.drafter", "auto")])
    engine = engine_on(tmp_path / "t", toy_folder)
    cold, _ = answer(engine, chosen)
    engine.close()
    again = engine_on(tmp_path / "t", toy_folder)
    apart, finished_apart = answer(again, assign_all(chosen, [("auto.remembered", False)]))
    again.forget()
    warm, finished_warm = answer(again, chosen)
    assert cold == apart == warm
    assert finished_warm.stats.steps < finished_apart.stats.steps
    again.close()


@pytest.mark.sweep
@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_answers_with_learned_ngrams_equal_plain_ones(
    tmp_path: Path, toy_folder: Path, temperature: float
) -> None:
    """Own answers draft new ones, also after a restart, and change none."""
    chosen = assign_all(MOD, [("sampling.temperature", temperature), ("sampling.seed", 3)])
    auto = assign_all(chosen, [("drafting.drafter", "auto")])
    plain = assign_all(chosen, [("drafting.drafter", "off")])
    engine = engine_on(tmp_path / "t", toy_folder)
    said = answer(engine, plain)[0]
    for seed in range(4):
        answer(engine, assign_all(auto, [("sampling.temperature", 0.9), ("sampling.seed", seed)]))
    assert answer(engine, auto)[0] == said
    engine.close()
    again = engine_on(tmp_path / "t", toy_folder)
    grams = again.memory.tables.grams(again.loaded.info.family)
    assert grams.used > 0
    inserts = grams.figures().inserts
    assert answer(again, auto)[0] == said
    assert grams.figures().inserts == inserts + len(said)
    again.close()


@pytest.mark.parametrize("drafter", ["ngram-mod", "auto"])
def test_learning_off_leaves_no_trace_and_changes_no_answer(
    tmp_path: Path, toy_folder: Path, drafter: str
) -> None:
    chosen = assign_all(MOD, [("drafting.drafter", drafter)])
    quiet = assign_all(chosen, [("tables.learn", False)])
    said: list[TableStatus] = []
    engine = engine_on(tmp_path / "t", toy_folder, said)
    private, finished = answer(engine, quiet)
    assert finished.effective.settings.tables.learn is False
    assert [status.moment for status in said] == ["cold"]
    assert engine.memory.due_s() is None
    engine.close()
    assert files(tmp_path / "t") == []
    engine = engine_on(tmp_path / "t", toy_folder, said)
    assert answer(engine, chosen)[0] == private
    assert engine.memory.due_s() is not None
    engine.close()
    tables = [name for name in files(tmp_path / "t") if "-n4-" in name]
    assert len(tables) == 1, "auto teaches the same table"


@pytest.mark.sweep
@pytest.mark.parametrize("drafter", [name for name, spec in DRAFTERS.items() if not spec.needs_proposer])
def test_a_poisoned_table_changes_no_answer(tmp_path: Path, toy_folder: Path, drafter: str) -> None:
    chosen = assign_all(MOD, [("drafting.drafter", drafter), ("gate.mode", "auto")])
    engine = engine_on(tmp_path / "t", toy_folder)
    plain, _ = answer(engine, assign_all(MOD, [("drafting.drafter", "off")]))
    info = engine.loaded.info
    table = engine.memory.tables.table(info.family, 4, 2**12)
    table.decay_at = 2.0
    rng = random.Random(3)
    # Every slot holds a guess, and hardly one of them the right one.
    table.insert_all([(rng.getrandbits(64), rng.randrange(info.vocabulary)) for _ in range(60_000)])
    assert table.used > 4090
    assert answer(engine, chosen)[0] == plain
    engine.close()


def test_a_bad_streak_in_one_chat_wipes_nothing(tmp_path: Path, toy_folder: Path) -> None:
    """Also the seed's third poor draft in a row, which there resets the table."""
    engine = engine_on(tmp_path / "t", toy_folder)
    answer(engine)
    table = engine.memory.tables.for_family(engine.loaded.info.family)[0]
    before = set(zip(*[part.tolist() for part in (table.entries().slots, table.entries().tokens)]))
    spec = DRAFTERS["ngram-mod"]
    info = engine.loaded.info
    drafter = spec.build(MOD, Resources(info.context_tokens, info.family, engine.memory.tables_for(MOD)))
    drafter.begin([5] * 40)
    for _ in range(50):
        draft = drafter.draft(8)
        drafter.feedback(draft, 0)
        drafter.observe([5])
    after = set(zip(*[part.tolist() for part in (table.entries().slots, table.entries().tokens)]))
    assert len(before - after) <= 2
    engine.close()


def test_gauges_carry_the_table(tmp_path: Path, toy_folder: Path) -> None:
    engine = engine_on(tmp_path / "t", toy_folder)
    uses = []
    for _ in range(2):
        engine.forget()
        events = list(engine.generate_ids(PROMPT, MOD))
        shown = [event.table for event in events if isinstance(event, Gauges)]
        last = events[-1]
        assert isinstance(last, Finished)
        use = last.stats.table
        assert use is not None
        figures = [info.figures for info in engine.memory.listing()[0]]
        assert (use.used, use.slots) == (figures[0].used, 2**12)
        assert [one.used_before for one in shown if one] == [use.used_before] * len(shown)
        assert [one.lookups for one in shown if one] == sorted(one.lookups for one in shown if one)
        uses.append((use, figures[0]))
    (cold, first), (warm, second) = uses
    assert cold.used_before == 0
    assert (cold.lookups, cold.hits) == (first.lookups, first.hits)
    assert warm.used_before == cold.used > 0
    assert (warm.lookups, warm.hits) == (second.lookups - first.lookups, second.hits - first.hits)
    assert warm.hits > cold.hits, "the same answer again is known"
    plain = assign_all(MOD, [("drafting.drafter", "off")])
    assert {e.table for e in engine.generate_ids(PROMPT, plain) if isinstance(e, Gauges)} == {None}
    engine.close()


# ---- the worker


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A DRAFTLIGHT_HOME of its own; the tables' folder in it."""
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path / "home"))
    yield tmp_path / "home" / "data" / "tables"
    shutil.rmtree(tmp_path / "home", ignore_errors=True)


def question(request: str, **values: object):  # type: ignore[no-untyped-def]
    chosen = {"drafting.drafter": "ngram-mod", "ngram_mod.n": 4, "gate.mode": "always", **values}
    return ask(request, "hello hello hello hello", **chosen)


def test_the_worker_keeps_tables_from_one_run_to_the_next(home: Path, toy_folder: Path) -> None:
    async def life() -> None:
        async with worker() as talk:
            await talk.client.send(LoadModel(str(toy_folder)))
            assert (await talk.until(TableStatus)).moment == "cold"
            await talk.client.send(question("r1"))
            learned = await talk.until(TableStatus)
            assert learned.moment == "learned"
            assert learned.tables[0].unsaved > 0
        # The worker was told to stop; it saved.
        assert len(files(home)) == 1
        async with worker() as talk:
            await talk.client.send(LoadModel(str(toy_folder)))
            warm = await talk.until(TableStatus)
            assert warm.moment == "warm"
            assert warm.tables[0].figures.used == learned.tables[0].figures.used

    run(life)


# Nothing is asked for half a second instead of fifteen.
_HASTY = (
    "import core.tables.memory as m, core.worker.main as w; m._SAVE_AFTER_S = 0.5; raise SystemExit(w.main())"
)


@pytest.mark.sweep
def test_the_worker_saves_when_nothing_is_asked_for_a_while(home: Path, toy_folder: Path) -> None:
    async def life() -> None:
        async with worker(command=[sys.executable, "-c", _HASTY]) as talk:
            await talk.client.send(LoadModel(str(toy_folder)))
            await talk.client.send(question("r1"))
            await talk.until(Finished)
            assert (await talk.until(TableStatus)).moment == "learned"
            assert (await talk.until(TableStatus, 60)).moment == "saved"
            assert len(files(home)) == 1
            talk.client.kill()

    run(life)


def test_table_commands_get_typed_answers(home: Path, toy_folder: Path, tmp_path: Path) -> None:
    async def life() -> None:
        out = str(tmp_path / "mine.table")
        async with worker() as talk:
            send = talk.client.send
            await send(SaveTables("a"))
            assert (await talk.until(Failed)).code == "bad-table"
            await send(LoadModel(str(toy_folder)))
            family = (await talk.until(ModelLoaded)).info.family
            await send(question("r1"))
            await talk.until(Finished)
            await send(SaveTables("b"))
            saved = await talk.until(TableDone)
            assert (saved.request, saved.action, saved.files) == ("b", "save", 1)
            await send(ListTables("c"))
            listed = await talk.until(TableList)
            assert listed.folder == str(home)
            (info,) = listed.tables
            assert (info.loaded, info.unsaved, info.family) == (True, 0, family)
            assert info.figures.used == saved.entries > 0
            await send(ExportTable("d", family, info.n, info.figures.slots, out))
            assert (await talk.until(TableDone)).path == out
            await send(ExportTable("e", family, info.n, info.figures.slots, out))
            failed = await talk.until(Failed)
            assert (failed.request, failed.command) == ("e", "export_table")
            await send(ResetTable("f", family))
            reset = await talk.until(TableDone)
            assert (reset.action, reset.entries, reset.files) == ("reset", saved.entries, 1)
            assert files(home) == []
            await send(ImportTable("g", out))
            assert (await talk.until(TableDone)).entries == saved.entries
            await send(LoadTables("h"))
            assert (await talk.until(TableDone)).entries == saved.entries
            await send(LoadTables("i", previous=True))
            assert "no previous generation" in (await talk.until(Failed)).message
            assert len(files(home)) == 1

    run(life)


def test_a_running_engine_uses_nothing_of_what_was_erased(
    tmp_path: Path, toy_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path))
    engine = engine_on(tables_dir(), toy_folder)
    info = engine.loaded.info
    counter = GramCounter(3)
    counter.add([], [1, 2, 3] * 9)
    path = built_dir() / f"toy{GRAMS.suffix}"
    save_grams(
        counter.table(Pruning()), path, family=info.family, family_name=info.family_name, learned_from="x"
    )
    beforehand = engine._session.beforehand
    assert beforehand.continuations()[0] is not None
    engine.erase_learned(info.family)
    assert not path.exists()
    assert beforehand.continuations()[0] is None
    engine.close()
    assert [name for name in files(tables_dir()) if name != "built"] == []
