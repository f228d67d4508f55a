"""Images that are read before the question: whatever comes between, the answer is that of a cold start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from core.documents.client import ImageReading
from core.engine.ahead import why_not_ahead
from core.engine.engine import Engine
from core.events import Attachment, Generate, Image, Message, ReadAheadProgress
from core.prefill.plan import Preference, preference_by_size
from core.settings import Settings
from tests.core.engine.seeing_chats import answered, asked, cold, settings_of

DOCUMENT = Attachment("a.txt", "".join(f"The number of box {n} is {n * 7919 % 1000}. " for n in range(20)))


@pytest.fixture
def engine(seeing_engine: Engine) -> Engine:
    return seeing_engine


@pytest.fixture
def decoded(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Hashes of the images that were decoded, in order; none has been before."""
    found: list[str] = []
    scaled = ImageReading.scaled

    def noted(self: ImageReading, hash: str, *rest: Any) -> bytes:
        found.append(hash)
        return scaled(self, hash, *rest)

    monkeypatch.setattr(ImageReading, "scaled", noted)
    return found


def _settings(drafter: str = "auto", **values: Any) -> Settings:
    chosen = {"sampling.max_tokens": 10, "prefill.mode": "off", "prefill.read_ahead": "on", **values}
    return settings_of(drafter, **chosen)


def _ahead(engine: Engine, messages: Sequence[Message], pieces: int | None = None) -> int:
    """Reads ahead of `messages`, all or some pieces; returns the number of pieces."""
    engine.read_ahead(Generate("", tuple(messages), _settings()))
    done = 0
    while (pieces is None or done < pieces) and engine._ahead.piece(engine._session, engine._guard):
        done += 1
    return done


def _rows(engine: Engine, image: Image) -> int:
    return len(engine._session.eyes().family.rows_of(image))


@pytest.mark.sweep
def test_an_image_is_read_as_soon_as_it_is_known(
    engine: Engine, pictures: tuple[Image, ...], decoded: list[str]
) -> None:
    one = pictures[0]
    question = [asked("What is it?", one)]
    expected = cold(engine, question, _settings())
    engine.forget(tables=True)
    engine._session.release_eyes(rows=True)
    del decoded[:]
    pieces = _ahead(engine, [asked("", one)])
    assert decoded == [one.hash]
    found, finished = answered(engine, question, _settings())
    assert found == expected
    assert finished.stats.reused_tokens > _rows(engine, one)
    assert decoded == [one.hash], "the question does not wait for the image"
    # Stopped after each of the pieces.
    for count in range(1, pieces):
        engine.forget(tables=True)
        engine._session.release_eyes(rows=True)
        _ahead(engine, [asked("", one)], count)
        assert answered(engine, question, _settings())[0] == expected, count


def test_images_replaced_and_removed_meanwhile(engine: Engine, pictures: tuple[Image, ...]) -> None:
    one, two, other = (Image(**{**_fields(each), "at": 0}) for each in pictures)
    said: list[ReadAheadProgress] = []
    engine.forget(tables=True)
    engine._ahead._say = said.append
    for drafts in ([one, two], [one]):
        del said[:]
        _ahead(engine, [asked("", *drafts, attachments=(DOCUMENT,))])
    assert [each.done_tokens == each.total_tokens for each in said] == [True], "nothing is read again"
    for drafts in ([], [other], [other, one], [one, other]):
        _ahead(engine, [asked("", *drafts, attachments=(DOCUMENT,))])
        question = [asked("What?", *drafts, attachments=(DOCUMENT,))]
        found, finished = answered(engine, question, _settings())
        assert finished.stats.reused_tokens > len(DOCUMENT.text)
        assert finished.stats.reused_tokens > 0.9 * finished.stats.prompt_tokens
        assert found == cold(engine, question, _settings())


def _fields(image: Image) -> dict[str, Any]:
    return {name: getattr(image, name) for name in image.__struct_fields__}


def test_a_small_model_reads_images_ahead_unless_documents_come_with_them(
    engine: Engine, pictures: tuple[Image, ...]
) -> None:
    by_size: Preference = preference_by_size(10**8)
    info = engine.loaded.info
    for more, reads in (({}, True), ({"attachments": (DOCUMENT,)}, False)):
        request = Generate("", (asked("", pictures[0], **more),), settings_of())
        assert (why_not_ahead(request, info, by_size) == "") == reads
