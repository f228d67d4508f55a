"""Images against the limits: memory, ids that index nothing, and a start that knows nothing of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from msgspec.structs import replace

from core.decoding.answer import MemoryGuard
from core.decoding.text import TokenTexts
from core.drafting.ngram_mod import TableWriter
from core.engine.engine import Engine
from core.errors import NotEnoughMemoryError
from core.events import FIRST_IMAGE_ROW, TYPED, Attachment, Generate, Image, MemoryNeed
from core.prefill.scorers import SCORERS
from core.vision import family as family_module
from tests.core.engine.seeing_chats import answered, asked, cold, settings_of
from tests.core.seeing import write_seeing_model, write_seeing_tokenizer
from tests.core.toy import write_toy_model

DOCUMENT = Attachment("a.txt", "".join(f"The number of box {n} is {n * 7919 % 1000}. " for n in range(40)))
SHORT = {"sampling.max_tokens": 8}


@pytest.fixture
def engine(seeing_engine: Engine) -> Engine:
    return seeing_engine


# ---- memory


@pytest.mark.sweep
def test_a_tower_that_does_not_fit_is_refused_with_a_sentence(
    engine: Engine, pictures: tuple[Image, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = [asked("See.", pictures[0])]
    expected = cold(engine, talk, settings_of(**SHORT))
    engine.forget(tables=True)
    eyes, need = engine._session.eyes(), engine.loaded.need
    assert need is not None
    working = eyes.family.working(eyes.family.scale(pictures[0].width, pictures[0].height))
    for refused in range(2):
        engine.forget()
        engine._session.release_eyes(rows=True)
        sizes: list[int] = []

        def make_room(size_bytes: int, sizes: list[int] = sizes, refused: int = refused) -> None:
            sizes.append(size_bytes)
            engine.make_room(1 << 60 if len(sizes) > refused else size_bytes, beside=True)

        monkeypatch.setattr(eyes, "_make_room", make_room)
        with pytest.raises(NotEnoughMemoryError, match=r"For images .* needs .* GB more"):
            answered(engine, talk, settings_of(**SHORT))
        assert sizes == [need.eyes, working][: refused + 1]
    monkeypatch.undo()
    assert answered(engine, talk, settings_of(**SHORT))[0] == expected


def test_the_predicted_memory_of_a_tower_is_its_size(engine: Engine) -> None:
    eyes, need = engine._session.eyes(), engine.loaded.need
    assert need is not None
    engine._session.release_eyes(rows=True)
    assert eyes.nbytes == 0
    eyes._loaded()
    assert eyes.nbytes == need.eyes


def test_a_pass_that_must_read_an_image_completely_is_counted() -> None:
    need = MemoryNeed(working=512 * 1000)
    for left_tokens, undivided, chunk in ((200, 0, 128), (300, 280, 256), (2000, 280, 512)):
        guard = MemoryGuard(need, lambda left=left_tokens: left * 1000)
        assert guard.chunk_tokens(0, 2000, 512, undivided) == chunk
    # A chunk that is smaller than an image grows to it.
    with pytest.raises(NotEnoughMemoryError, match=r"2,000 tokens with images of 280 tokens each needs"):
        MemoryGuard(need, lambda: 200_000).chunk_tokens(0, 2000, 64, 280)


def test_reading_counts_the_pass_of_an_image(
    engine: Engine, pictures: tuple[Image, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted: list[int] = []
    fits = MemoryGuard.chunk_tokens

    def noted(self: MemoryGuard, held: int, columns: int, wish: int, undivided: int = 0) -> int:
        wanted.append(undivided)
        return fits(self, held, columns, wish, undivided)

    monkeypatch.setattr(MemoryGuard, "chunk_tokens", noted)
    engine.forget()
    answered(engine, [asked("See.", *pictures[:2])], settings_of(**SHORT))
    family = engine._session.eyes().family
    most = max(len(family.rows_of(each)) for each in pictures[:2])
    assert set(wanted) == {most if family.both_ways else 0}


def test_memory_freed_for_an_answer_keeps_the_rows_that_it_reads(
    engine: Engine, pictures: tuple[Image, ...]
) -> None:
    request = Generate("", (asked("See.", pictures[0]),))
    answered(engine, request.messages, settings_of(**SHORT))
    before = engine._session.eyes_bytes
    engine._release_contexts(request)
    rows = engine._session.eyes_bytes
    assert 0 < rows < before
    engine._release_contexts(replace(request, messages=(asked("See."),)))
    assert engine._session.eyes_bytes == 0


def test_attention_in_blocks_is_that_of_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v = (mx.random.normal((1, 4, 50, 12)) for _ in range(3))
    whole = family_module.attended(q, k, v, 0.3)
    for rows in (1, 7, 49):
        monkeypatch.setattr(family_module, "_SCORES_BYTES", 4 * 4 * 50 * rows)
        assert mx.abs(family_module.attended(q, k, v, 0.3) - whole).max().item() < 1e-5


# ---- ids of rows


@pytest.mark.sweep
def test_no_scorer_detokeniser_or_table_gets_a_row(
    engine: Engine, pictures: tuple[Image, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given: list[int] = []
    add, inner = TokenTexts.add, engine.loaded.tokenizer._tokenizer
    monkeypatch.setattr(TokenTexts, "add", lambda self, token: (given.append(token), add(self, token))[1])
    for name in ("decode", "convert_ids_to_tokens"):
        known = getattr(inner, name)

        def noted(ids: Any, *rest: Any, known: Any = known, **more: Any) -> Any:
            given.extend([ids] if isinstance(ids, int) else [int(each) for each in ids])
            return known(ids, *rest, **more)

        monkeypatch.setattr(inner, name, noted)
    write_toy_model(tmp_path / "draft")
    write_seeing_tokenizer(tmp_path / "draft", Path(engine.loaded.info.path).name)
    talk = [asked("What is in box 17?", pictures[0], attachments=(DOCUMENT,))]
    for scorer in SCORERS:
        sparse: dict[str, Any] = {"prefill.mode": "on", "prefill.scorer": scorer, "prefill.keep_pct": 10}
        sparse["draft_model.model"] = str(tmp_path / "draft")
        settings = settings_of("auto", **sparse, **SHORT)
        expected = cold(engine, talk, settings)
        assert answered(engine, talk, settings)[0] == expected, scorer
    assert given
    assert max(given) < FIRST_IMAGE_ROW


def test_tables_that_are_saved_learn_no_row(
    engine: Engine, pictures: tuple[Image, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    learned: list[int] = []
    observe = TableWriter.observe
    monkeypatch.setattr(
        TableWriter, "observe", lambda self, tokens: (learned.extend(tokens), observe(self, tokens))[1]
    )
    talk = [asked("See see see see.", pictures[0])]
    found, _ = answered(engine, talk, settings_of("ngram-mod"))
    assert len(learned) > len(found)
    assert max(learned) < FIRST_IMAGE_ROW


@pytest.mark.sweep
def test_a_continued_and_edited_answer_behind_an_image(engine: Engine, pictures: tuple[Image, ...]) -> None:
    """Penalties count the answer's begun tokens, which stand behind rows."""
    talk = [asked("", pictures[0])]
    penalties = {"sampling.frequency_penalty": 0.5, "sampling.repetition_penalty": 1.1}
    settings = settings_of("auto", **penalties, **{"sampling.no_repeat_ngram_size": 3})
    expected = cold(engine, talk, settings)
    for count in (1, 9, 30):
        begun = tuple(expected[:count])
        found, _ = answered(engine, talk, settings, continuation=begun)
        assert found[: 40 - count] == expected[count:40]
    edited = {"continuation": (*expected[:4], TYPED), "continuation_texts": ("a", "b", "c", "d", "efg")}
    wanted = cold(engine, talk, settings, **edited)
    assert answered(engine, talk, settings, **edited)[0] == wanted


# ---- without an image


@pytest.mark.sweep
def test_nothing_of_images_is_imported_or_loaded_without_one(tmp_path: Path) -> None:
    """Neither by a model that sees and its answer, nor by reading ahead and counting."""
    write_seeing_model(tmp_path / "model")
    program = f"""
import sys
from core.models.runtime import prepare
prepare()
from core.engine.engine import Engine
from core.events import Generate, Message
import core.worker.main
engine = Engine()
assert engine.load({str(tmp_path / "model")!r}).sees
request = Generate("", (Message("user", "What?"),), engine.loaded.info.settings)
engine.count_prompt(request)
engine.read_ahead(request)
while engine._ahead.piece(engine._session, engine._guard):
    pass
list(engine.generate(request))
assert not engine._session.eyes_bytes
engine.unload()
print([name for name in sys.modules if name == "PIL" or name.startswith(("PIL.", "core.vision"))])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.stdout.strip().splitlines()[-1:] == ["[]"], done.stdout + done.stderr
