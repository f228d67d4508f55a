"""Drafting with a model's head: answers equal plain decoding, the head's cache follows the context."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from mlx_lm.generate import generate_step
from mlx_lm.models.cache import make_prompt_cache
from msgspec.structs import replace

from core.decoding.heads import HeadProposer
from core.drafting.draft_model import Proposal
from core.engine.engine import Engine
from core.models.draft_head import DraftHead
from core.models.head_loader import load_head
from core.settings import Settings, assign
from core.system.paths import models_dir
from tests.core.architectures import VOCABULARY
from tests.core.decoding.test_loop import prompt_with_repetition
from tests.core.engine.support import SAMPLED, ends_and_goes_on, run, settings
from tests.core.engine.test_sparse_session import prompt_of
from tests.core.engine.test_sparse_session import settings as sparse
from tests.core.heads import CONFIGS, OWN, PLACES, SEPARATE, Layout, Mode, write_headed_model
from tests.core.published_heads import ASSISTANTS, OTHERS, write_drafted_model

pytestmark = pytest.mark.usefixtures("unlikely_guesses")

TOKENS = 40
# Each kind of cache, and each kind of block, once; the others are sweeps.
FEW = ("qwen3_5", "deepseek_v3", "gemma4-small")
each_head = pytest.mark.parametrize(
    "name",
    [name if name in FEW else pytest.param(name, marks=pytest.mark.sweep) for name in (*CONFIGS, *OTHERS)],
)


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


def assert_head_follows(engine: Engine, text: list[int]) -> None:
    """The head's cache is what it computes from the hidden states of one pass over the text."""
    model: Any = engine.loaded.model
    head = load_head(model, Path(engine.loaded.info.path))
    assert isinstance(head, DraftHead)
    own = engine.sequence.head
    if head.new_cache is None:
        assert own is None
        assert engine.sequence.state is not None
        return
    assert own is not None
    held = len(own.tokens)
    assert own.tokens == text[:held]
    # All but the first token, which has no hidden state before it.
    assert own.columns.count == held - 1
    ids = mx.array([text[:held]])
    _, states = head.parts.read(ids, make_prompt_cache(model), head.layers)
    cache: Any = head.new_cache()
    head.step(ids[:, 1:], head.fuse(states)[:, :-1], cache)
    for mine, entry in zip(own.cache, cache, strict=True):
        for one, other in ((mine.keys, entry.keys), (mine.values, entry.values)):
            assert mx.abs(one[..., : held - 1, :] - other[..., : held - 1, :]).max().item() < 1e-3


MODES: dict[str, dict[str, object]] = {"greedy": {}, "sampled": dict(SAMPLED)}


@each_head
@pytest.mark.parametrize("mode", MODES)
def test_answers_equal_plain_decoding(engine: Engine, name: str, mode: str) -> None:
    values = MODES[mode]
    prompt = prompt_with_repetition(random.Random(name))
    expected = plainly(engine, prompt, **values)
    got, finished = run(engine, prompt, drafting(**values))
    assert got == expected
    assert finished.effective.drafter == "mtp"
    assert finished.stats.drafted > 0
    assert_head_follows(engine, [*prompt, *got])
    # The chat goes on, and its prefix was read with the head.
    follow = [*prompt, *got, *prompt_with_repetition(random.Random(1), 20)]
    got, finished = run(engine, follow, drafting(**values))
    assert finished.stats.reused_tokens > len(prompt)
    assert_head_follows(engine, [*follow, *got])
    assert got == plainly(engine, follow, **values)


@each_head
@pytest.mark.parametrize("mode", MODES)
def test_auto_asks_the_head(engine: Engine, name: str, mode: str) -> None:
    values = {"drafting.drafter": "auto", **MODES[mode]}
    prompt = prompt_with_repetition(random.Random(name))
    expected = plainly(engine, prompt, **values)
    got, finished = run(engine, prompt, drafting(**values))
    assert got == expected
    assert finished.effective.drafter == "auto"
    assert_head_follows(engine, [*prompt, *got])
    # A step in which the head is not asked also passes its state on.
    follow = [*prompt, *got, *prompt_with_repetition(random.Random(1), 20)]
    got, _ = run(engine, follow, drafting(**values))
    assert got == plainly(engine, follow, **values)
    run(engine, follow, drafting(**{**values, "auto.model_drafts": False}))
    assert engine.sequence.head is None


@each_head
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


@pytest.mark.parametrize(
    "name",
    [
        "dflash",
        *(pytest.param(each, marks=pytest.mark.sweep) for each in ("qwen3_5", "gemma4", "eagle3-narrow")),
    ],
)
def test_in_exact_mode(engine: Engine, name: str) -> None:
    prompt = prompt_with_repetition(random.Random(name))
    for values in MODES.values():
        exact = {"decoding.exactness": "exact", **values}
        expected = plainly(engine, prompt, **exact)
        for drafter in ("mtp", "auto"):
            engine.forget()
            got, _ = run(engine, prompt, drafting(**exact, **{"drafting.drafter": drafter}))
            assert got == expected


@each_head
def test_stops_cancels_and_the_turn_after_them(engine: Engine, name: str) -> None:
    prompt = prompt_with_repetition(random.Random(name))
    expected = plainly(engine, prompt, 80)
    chosen = drafting(**{"sampling.max_tokens": 80})

    def cold(follow: list[int], tokens: int) -> list[int]:
        steps = generate_step(mx.array(follow), engine.loaded.model, max_tokens=tokens)
        return [int(token) for token, _ in steps]

    ends_and_goes_on(engine, name, prompt, expected, chosen, cold)


@each_head
def test_an_edited_and_another_chat(engine: Engine, name: str) -> None:
    prompt = prompt_with_repetition(random.Random(name))
    run(engine, prompt, drafting())
    edited = [*prompt[:40], 7, 8, 9, *prompt[43:]]
    expected = plainly(engine, edited)
    run(engine, prompt, drafting())
    got, _ = run(engine, edited, drafting())
    assert got == expected
    # Back in the first chat, whose cache was copied or cut: at most one row is missing.
    again, _ = run(engine, prompt, drafting())
    if name not in ASSISTANTS:
        own = engine.sequence.head
        assert own is not None
        assert own.tokens == [*prompt, *again][: len(own.tokens)]
        assert own.skipped <= 2


@each_head
def test_after_a_sparse_reading(engine: Engine, name: str) -> None:
    prompt = prompt_of(31, 800)
    chosen = sparse(**{"drafting.drafter": "mtp"})
    engine.forget()
    plain, finished = run(engine, prompt, assign(chosen, "drafting.drafter", "off"))
    assert finished.stats.skipped_tokens > 0
    engine.forget()
    got, finished = run(engine, prompt, chosen)
    assert got == plain
    assert finished.stats.drafted > 0
    if name not in ASSISTANTS:
        own = engine.sequence.head
        assert own is not None
        assert own.skipped == engine.sequence.skipped + 1


@pytest.mark.parametrize("name", ["qwen3_5"])
def test_a_prefix_without_hidden_states(engine: Engine, name: str) -> None:
    """Read without the head, as from disk: its rows are missing, and the answer is the same."""
    prompt = prompt_with_repetition(random.Random(name))
    expected = plainly(engine, prompt)
    off = drafting(**{"drafting.drafter": "off", "sampling.max_tokens": 1})
    run(engine, prompt, off)
    got, finished = run(engine, prompt, drafting())
    assert got == expected
    assert finished.stats.drafted > 0


@pytest.mark.parametrize("place", PLACES)
def test_drafted_answers_equal_plain_ones_in_every_layout(place: str, tmp_path: Path) -> None:
    rng = random.Random(place)
    modes: tuple[Mode, ...] = ("", "affine", "mxfp4", "mxfp8")
    layout = Layout(place, place != OWN and rng.random() < 0.7, rng.choice(modes))
    write_headed_model(tmp_path / "Tiny-4bit", rng.choice(FEW[:2]), layout)
    engine = Engine()
    engine.load(str(tmp_path / "Tiny-4bit"))
    engine.loaded.eos = frozenset()
    prompt = prompt_with_repetition(rng)
    for values in MODES.values():
        expected = plainly(engine, prompt, 24, **values)
        got, finished = run(engine, prompt, drafting(**values, **{"sampling.max_tokens": 24}))
        assert got == expected
        assert finished.effective.drafter == "mtp"
        assert finished.stats.drafted > 0


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
    assert change.setting == ("drafting.drafter" if drafter == "mtp" else "auto.model_drafts")
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
