"""Heads in every layout, wrong heads and unusable ones. The matrix has their answers (test_conformance)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from msgspec.structs import replace

from core.decoding.heads import HeadProposer
from core.drafting.draft_model import Proposal
from core.engine.engine import Engine
from core.engine.model_session import TimedProposer
from core.events import Finished, Generate
from core.folders.catalogue import Catalogue
from core.folders.config import Machine
from core.kv.cached_sequence import CachedSequence
from core.kv.mlx_lm_caches import leaves
from core.kv.saved_files import SavedFiles
from core.machine.profile import with_gains
from core.machine.width_cost import LiveCost, default_cost
from core.settings import Settings
from core.system.paths import models_dir
from tests.core.architectures import VOCABULARY
from tests.core.decoding.test_loop import prompt_with_repetition
from tests.core.engine.support import SAMPLED, run, settings, written
from tests.core.headed_models import CONFIGS, OWN, PLACES, SEPARATE, Layout, Mode, write_headed_model
from tests.core.published_heads import OTHERS, write_drafted_model
from tests.thinned import thinned

pytestmark = pytest.mark.usefixtures("unlikely_guesses")

TOKENS = 40
# The others are sweeps.
FEW = ("qwen3_5", "deepseek_v3", "gemma4-small")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("heads")


@pytest.fixture
def engine(name: str, folders: Path, engines: dict[str, Engine]) -> Engine:
    if name not in engines:
        if name in CONFIGS:
            write_headed_model(folders / name, name)
        else:
            write_drafted_model(folders / name, name)
        engines[name] = Engine()
        engines[name].load(str(folders / name))
        engines[name].loaded.eos = frozenset()
    engines[name].forget()
    return engines[name]


def drafting(**values: object) -> Settings:
    values = {"sampling.max_tokens": TOKENS, "draft_model.model": "", **values}
    return settings("mtp", Path(), **values)


def plainly(engine: Engine, prompt: list[int], tokens: int = TOKENS, **values: object) -> list[int]:
    """Without drafts, from nothing."""
    engine.forget()
    chosen = drafting(**{**values, "drafting.drafter": "off", "sampling.max_tokens": tokens})
    found, _ = run(engine, prompt, chosen)
    engine.forget()
    return found


@pytest.mark.parametrize("name", thinned((*CONFIGS, *OTHERS), keep=("qwen3_5", "gemma4-small")))
def test_a_head_that_is_never_right_is_dropped_within_64_tokens(
    engine: Engine, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    ask = HeadProposer.propose

    def wrong(proposer: HeadProposer, context: Sequence[int], count: int) -> Proposal:
        asked.append(len(context) - len(prompt))
        found = ask(proposer, context, count)
        return replace(found, tokens=[VOCABULARY - 1 for _ in found.tokens], second=-1)

    monkeypatch.setattr(HeadProposer, "propose", wrong)
    # Whatever else the machine does meanwhile.
    measured = LiveCost.step
    monkeypatch.setattr(
        LiveCost, "step", lambda self, width, _, **kind: measured(self, width, default_cost(width) / 100)
    )
    monkeypatch.setattr(TimedProposer, "cost", lambda self, count, _: self._times(count) * self._prior)
    engine._session._proposals = None  # what earlier answers taught
    prompt = [random.Random(name).randrange(VOCABULARY - 1) for _ in range(60)]
    chosen = drafting(
        **{"drafting.drafter": "auto", "sampling.max_tokens": 96, **SAMPLED, "sampling.seed": 3}
    )
    got, _ = run(engine, prompt, chosen)
    assert len(got) == 96
    assert asked
    assert len([at for at in asked if at < 64]) <= 6
    assert max(after - at for at, after in pairwise([*asked, 96])) >= 32


@pytest.mark.sweep
@pytest.mark.parametrize("name", thinned((*CONFIGS, *OTHERS), keep=(*FEW, "dflash")))
def test_guesses_of_later_turns_are_those_of_a_cold_start(
    engine: Engine, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a second and third turn, an edit and a regeneration, as if all had been read at once."""
    found: list[tuple[list[int], Proposal]] = []
    ask = HeadProposer.propose

    def kept(proposer: HeadProposer, context: Sequence[int], count: int) -> Proposal:
        got = ask(proposer, context, count)
        # While a plain step runs, an assistant attends to one token more; such a guess is not verified.
        if got.tokens and (engine.sequence.head or _held_tokens(engine.sequence) == len(context) - 1):
            found.append((list(context), got))
        return got

    rng = random.Random(name)

    def words(count: int) -> list[int]:
        return [rng.randrange(VOCABULARY - 1) for _ in range(count)]

    prompt = prompt_with_repetition(rng)
    prompts, chosen = [prompt], drafting(**{"sampling.max_tokens": 16})
    monkeypatch.setattr(HeadProposer, "propose", kept)
    answer, _ = run(engine, prompt, chosen)
    for _ in range(2):  # a second and a third turn
        prompts.append([*prompts[-1], *answer, *words(9)])
        answer, _ = run(engine, prompts[-1], chosen)
    for at in (len(prompts[1]) - 5, 30):  # edits, near the end and in the middle
        prompts.append([*prompts[1][:at], *words(20)])
        run(engine, prompts[-1], chosen)
    run(engine, prompts[-1], chosen)  # the same again
    monkeypatch.setattr(HeadProposer, "propose", ask)
    assert len(found) > 30
    head = engine._session.head()
    assert isinstance(head, HeadProposer)
    for context, got in rng.sample(found, 30):
        cold = HeadProposer(head._head)
        _read_at_once(cold, engine, context)
        assert ask(cold, context, len(got.tokens)).tokens == got.tokens


@pytest.mark.sweep
@pytest.mark.parametrize("name", thinned((*CONFIGS, *OTHERS), keep=("qwen3_5", "eagle3-speculators")))
@pytest.mark.usefixtures("engine")  # which writes the model
def test_guesses_after_a_chat_was_loaded_are_those_without_saving(
    name: str, folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For the next question, and for one that changes the middle of the chat."""
    rng = random.Random(name)
    question = [rng.randrange(VOCABULARY - 1) for _ in range(300)]
    others = [[rng.randrange(VOCABULARY - 1) for _ in range(count)] for count in (9, 30)]
    found: list[tuple[list[int], list[int], list[float]]] = []
    ask = HeadProposer.propose

    def kept(proposer: HeadProposer, context: Sequence[int], count: int) -> Proposal:
        got = ask(proposer, context, count)
        found.append((list(context), got.tokens, got.probabilities))
        return got

    def started(files: SavedFiles | None) -> Engine:
        made = Engine(saved_files=files)
        made.load(str(folders / name))
        made.loaded.eos = frozenset()
        return made

    def second_turn(context: list[int], files: SavedFiles | None) -> tuple[int, list[Any]]:
        """Tokens read from disk, and the guesses."""
        engine = started(files) if files else warm
        found.clear()
        _, finished = answered(engine, context, asked)
        if files:
            engine.saved_chats.erase([], everything=True)
            engine.unload()
        return finished.stats.disk_tokens, list(found)

    monkeypatch.setattr(HeadProposer, "propose", kept)
    asked = drafting(**{"sampling.max_tokens": 16})
    for is_next in (True, False):
        files = SavedFiles(tmp_path / f"contexts {is_next}")
        warm = started(files)
        answer, _ = answered(warm, question, asked)
        warm.unload()
        # The same without a file.
        warm = started(None)
        answered(warm, question, asked)
        context = [*question, *answer, *others[0]] if is_next else [*question[:280], *others[1]]
        _, expected = second_turn(context, None)
        warm.forget()
        warm.unload()
        disk_tokens, got = second_turn(context, files)
        assert expected
        assert disk_tokens > 200 or not is_next
        if disk_tokens:
            assert [each[:2] for each in got] == [each[:2] for each in expected]
            for one, other in zip(got, expected, strict=True):
                assert one[2] == pytest.approx(other[2], rel=1e-4)


def answered(engine: Engine, prompt: list[int], chosen: Settings) -> tuple[list[int], Finished]:
    """As a turn of one chat."""
    tokens, finished = written(engine.generate_ids(prompt, chosen, also=Generate("", (), chat="a chat")))
    return [token.id for token in tokens], finished


def _held_tokens(sequence: CachedSequence) -> int:
    return max(int(entry.offset) for entry in leaves(sequence.cache) if hasattr(entry, "offset"))


def _read_at_once(head: HeadProposer, engine: Engine, context: Sequence[int]) -> None:
    """Let `head` know `context`, of which a new sequence holds all but the last token."""
    sequence, ids = CachedSequence(engine.loaded.new_cache), list(context[:-1])
    head.begin(sequence, context)
    _, states = head.read(mx.array(ids)[None], sequence.cache)
    sequence.settle()
    sequence.append_at(context, np.arange(len(ids), dtype=np.int32))
    head.receive(range(len(ids)), ids, states)


@pytest.mark.sweep
@pytest.mark.parametrize("place", PLACES)
def test_drafted_answers_equal_plain_ones_in_every_layout(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what the head brought is kept with the model."""
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("core.machine.profile._ENOUGH_STEPS", 30)
    rng = random.Random(place)
    modes: tuple[Mode, ...] = ("", "affine", "mxfp4", "mxfp8")
    layout = Layout(place, place != OWN and rng.random() < 0.7, rng.choice(modes))
    write_headed_model(tmp_path / "Tiny-4bit", rng.choice(FEW[:2]), layout)
    engine = Engine()
    engine.load(str(tmp_path / "Tiny-4bit"))
    engine.loaded.eos = frozenset()
    prompt = prompt_with_repetition(rng)
    values = rng.choice(({}, SAMPLED))
    expected = plainly(engine, prompt, 24, **values)
    got, finished = run(engine, prompt, drafting(**values, **{"sampling.max_tokens": 24}))
    assert got == expected
    assert finished.effective.drafter == "mtp"
    assert finished.stats.drafted > 0
    entry = Catalogue(Machine(1 << 40, expands=True)).take(str(tmp_path / "Tiny-4bit"))
    assert [each.heads[0].gain for each in with_gains([entry])] == [0.0]  # of too few steps
    ask, first = HeadProposer.propose, finished.stats

    def right(proposer: HeadProposer, context: Sequence[int], count: int) -> Proposal:
        found = ask(proposer, context, count)
        rest = expected[len(context) - len(prompt) :]
        return replace(found, tokens=[*rest, *found.tokens][: len(found.tokens)])

    monkeypatch.setattr(HeadProposer, "propose", right)
    engine.forget()
    chosen = drafting(**values, **{"sampling.max_tokens": 24})
    stats = [first, *(run(engine, prompt, chosen)[1].stats for _ in range(3))]
    gain = sum(each.accepted for each in stats) / sum(each.steps for each in stats)
    assert [each.heads[0].gain for each in with_gains([entry])] == [pytest.approx(gain)]
    assert gain > 0.5


@pytest.mark.parametrize("drafter", ["mtp", "auto"])
def test_without_a_usable_head_the_answer_says_why(
    drafter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path / "home"))
    folder, chosen = tmp_path / "Tiny-4bit", drafting(**{"drafting.drafter": drafter})
    write_headed_model(folder, "qwen3_5", Layout("model-mtp.safetensors"))
    whole = (folder / "model-mtp.safetensors").read_bytes()
    (folder / "model-mtp.safetensors").write_bytes(whole[:-100])
    engine = Engine()
    engine.load(str(folder))
    prompt = prompt_with_repetition(random.Random(0))
    expected = plainly(engine, prompt)
    got, finished = run(engine, prompt, chosen)
    assert got == expected
    change, *_ = [each for each in finished.effective.changes if "MTP head" in each.reason]
    assert change.setting == "drafting.drafter"
    assert "the MTP head in model-mtp.safetensors cannot be read" in change.reason
    # Without any head `auto` has nothing to say; one that is downloaded later is used at once.
    (folder / "model-mtp.safetensors").unlink()
    engine.load(str(folder))
    _, finished = run(engine, prompt, chosen)
    assert ("no head for it was found" in str(finished.effective.changes)) == (drafter == "mtp")
    write_headed_model(models_dir() / "owner--Tiny", "qwen3_5", Layout(SEPARATE))
    _, finished = run(engine, prompt, chosen)
    assert "MTP head" not in str(finished.effective.changes)
    assert engine.sequence.head is not None
    engine.forget()
    run(engine, prompt, drafting(**{"drafting.drafter": "frequency"}))
    assert engine.sequence.head is None
