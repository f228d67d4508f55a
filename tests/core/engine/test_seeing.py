"""Chats with images: whatever drafts, reuses, skips or was saved, an answer is that of a cold plain start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from core.documents.images import describe
from core.drafting.registry import DRAFTERS
from core.engine.engine import Engine
from core.engine.generation import Writing
from core.engine.model_session import DraftModels
from core.errors import RequestError
from core.events import FIRST_IMAGE_ROW, Attachment, Generate, Grammar, Image, Message, Scans, ToolCall
from tests.core import seeing
from tests.core.engine.seeing_chats import answered, asked, cold, settings_of
from tests.core.engine.support import DRAFTING
from tests.core.seeing import config_of, image, write_seeing_model, write_seeing_tokenizer
from tests.core.toy import write_toy_model

PENALTIES: tuple[dict[str, Any], ...] = (
    {"sampling.repetition_penalty": 1.1},
    {"sampling.frequency_penalty": 0.5, "sampling.presence_penalty": 0.3},
    {"sampling.no_repeat_ngram_size": 3},
    {"sampling.temperature": 0.6, "sampling.seed": 4},
)


@pytest.fixture
def engine(seeing_engine: Engine) -> Engine:
    return seeing_engine


@pytest.mark.sweep
@pytest.mark.parametrize("drafter", DRAFTING)
def test_a_drafted_answer_is_the_plain_one(
    drafter: str, engine: Engine, pictures: tuple[Image, ...], seeing_folder: Path
) -> None:
    messages = [asked("See these two.", *pictures[:2])]
    expected = cold(engine, messages, settings_of())
    if not (seeing_folder / "draft").exists():
        write_toy_model(seeing_folder / "draft")
    found, finished = answered(
        engine, messages, settings_of(drafter, **{"draft_model.model": str(seeing_folder / "draft")})
    )
    assert found == expected
    assert finished.stats.image_tokens > 0
    if DRAFTERS[drafter].needs_proposer != "draft model":
        assert finished.stats.accepted > 0


@pytest.mark.sweep
@pytest.mark.parametrize("values", PENALTIES)
def test_penalties_and_noise_see_the_text_alone(
    values: dict[str, Any], engine: Engine, pictures: tuple[Image, ...]
) -> None:
    messages = [asked("", pictures[0])]  # so that the window reaches over the image
    expected = cold(engine, messages, settings_of(**values))
    assert answered(engine, messages, settings_of("ngram-simple", **values))[0] == expected
    assert answered(engine, messages, settings_of("auto", **values))[0] == expected


def test_a_grammar_drafts_behind_an_image(engine: Engine, pictures: tuple[Image, ...]) -> None:
    grammar = Grammar("json_schema", '{"type": "object", "properties": {"kind": {"enum": ["alpha", "beta"]}},'
                      ' "required": ["kind"], "additionalProperties": false}')  # fmt: skip
    messages = [asked("Say.", pictures[0])]
    engine.loaded.eos = frozenset({0})
    expected = cold(engine, messages, settings_of(), grammar=replace(grammar, drafts=False))
    found, finished = answered(engine, messages, settings_of("auto"), grammar=grammar)
    engine.loaded.eos = frozenset()
    assert found == expected
    assert finished.stats.forced > 0


@pytest.mark.sweep
def test_later_turns_edits_and_other_images_are_answered_as_from_cold(
    engine: Engine, pictures: tuple[Image, ...]
) -> None:
    one, _, other = pictures
    settings = settings_of("auto", **{"sampling.max_tokens": 12})
    first = [asked("What is it, in a few words?", one)]
    talks = [
        first,
        [*first, Message("assistant", "A line."), asked("And now?")],
        [*first, Message("assistant", "A line."), asked("And this?", other)],
        [asked("What is it, in a few words?", other)],  # replaced
        [asked("What is it, edited?", one)],
        first,  # again
    ]
    expected = [cold(engine, talk, settings) for talk in talks]
    engine.forget(tables=True)
    reused = []
    for talk, answer in zip(talks, expected):
        found, finished = answered(engine, talk, settings, chat="a chat")
        assert found == answer
        reused.append(finished.stats.reused_tokens)
    rows = len(engine._session.eyes().family.rows_of(one))
    assert reused[1] > rows
    assert reused[2] > rows
    assert reused[3] < rows  # another image diverges at its first row
    assert reused[5] > rows


def test_pages_of_documents_are_read_after_their_names_and_the_unread_are_told(
    engine: Engine, pictures: tuple[Image, ...]
) -> None:
    one, two, other = (
        replace(each, name=f"a.pdf, page {number}", scan="hash", page=number)
        for each, number in zip(pictures, (2, 3, 5))
    )
    scan = Attachment("a.pdf", "Words of it.", scans=Scans("/a.pdf", "hash", (2, 3, 4, 5)))
    settings = settings_of("auto", **{"sampling.max_tokens": 6})
    first = asked("What?", replace(pictures[0], at=3), one, two, attachments=(scan,))
    talks = [[first], [first, Message("assistant", "It."), asked("And?", other)]]
    expected = [cold(engine, talk, settings) for talk in talks]
    engine.forget(tables=True)
    unread = []
    for talk, answer in zip(talks, expected):
        found, finished = answered(engine, talk, settings, chat="a chat")
        assert found == answer
        ((used, why),) = [
            (change.used, change.reason)
            for change in finished.effective.changes
            if change.setting == "images"
        ]
        unread.append((used, why[:40]))
    rows = len(engine._session.eyes().family.rows_of(one))
    assert finished.stats.reused_tokens > 3 * rows
    assert unread[0] == ("2 pages", "pages 4 to 5 of a.pdf were not read: the")
    assert unread[1] == ("3 pages", "page 4 of a.pdf was not read: it is an i")
    text = engine._prompt(Generate("", tuple(talks[0]), settings))[0].text
    places = [text.index(part) for part in ("Words of it.", "a.pdf, page 2:", "a.pdf, page 3:", "Wha")]
    assert places == sorted(places)
    # Each name is right before its image, and the other image where the question has it.
    shown = engine._session.eyes().family.shown
    assert f"a.pdf, page 2:\n{shown}\n\na.pdf, page 3:\n{shown}\n\nWha{shown}t?" in text


@pytest.mark.sweep
def test_a_chat_is_reopened_from_disk_with_its_images(engine: Engine, pictures: tuple[Image, ...]) -> None:
    settings = settings_of("auto", **{"sampling.max_tokens": 12, "prefill.save": True})
    text = "A long story of many words. " * 24
    first = [asked(text, pictures[0])]
    later = [*first, Message("assistant", "Yes."), asked("Go on.")]
    expected = cold(engine, later, settings)
    answered(engine, first, settings, chat="saved")
    reference = engine.loaded.info.reference
    engine.load(reference)  # which saves the chat
    engine.loaded.eos = frozenset()
    engine.try_out()
    found, finished = answered(engine, later, settings, chat="saved")
    assert found == expected
    assert finished.stats.disk_tokens > len(text)


@pytest.mark.sweep
def test_two_chats_about_one_image_do_not_mix(engine: Engine, pictures: tuple[Image, ...]) -> None:
    """They share its rows; each has its own continuation, whichever is asked, also with an edit between."""
    one, _, other = pictures  # of one size
    settings = settings_of("auto", **{"sampling.max_tokens": 10})
    yes = Message("assistant", "Yes.")
    left, right = [asked("What is it?", one)], [asked("Which colour has it?", one)]
    walk = [
        ("left", left),
        ("right", right),
        ("left", [*left, yes, asked("And this?", other)]),
        ("right", [*right, yes, asked("And which has this?", other)]),
        ("third", [asked("What is it?", other)]),
        ("left", [*left, yes, asked("Really?", one)]),
        ("right", right),
    ]
    expected = []
    for _, talk in walk:
        engine._session.release_eyes(rows=True)  # so that none is another image's
        expected.append(cold(engine, talk, settings))
    engine.forget(tables=True)
    rows = len(engine._session.eyes().family.rows_of(one))
    for number, ((chat, talk), wanted) in enumerate(zip(walk, expected)):
        found, finished = answered(engine, talk, settings, chat=chat)
        assert found == wanted, number
        assert (finished.stats.reused_tokens > rows) == (number > 0 and chat != "third"), number


@pytest.mark.sweep
def test_a_file_with_other_pixels_is_another_image(engine: Engine, tmp_path: Path) -> None:
    """A chat about a file is saved; the file is overwritten; the chat is opened again, by both hashes."""
    text = "A long story of many words. " * 12
    settings = settings_of("auto", **{"sampling.max_tokens": 8, "prefill.save": True})
    old = image(tmp_path, 1)
    path = Path(old.path)
    kept = path.read_bytes()
    path.write_bytes(Path(image(tmp_path, 3).path).read_bytes())
    new = replace(describe(path), path=str(path))
    assert (new.name, new.width, new.height, new.hash == old.hash) == (old.name, 40, 24, False)
    before = [asked(text), Message("assistant", "Yes.")]
    talks = [[*before, asked("What is it?", each)] for each in (old, new)]
    expected = [cold(engine, talks[1], settings)]
    path.write_bytes(kept)
    expected.insert(0, cold(engine, talks[0], settings))
    engine.forget(tables=True)
    answered(engine, talks[0], settings, chat="pixels")
    reference = engine.loaded.info.reference
    path.write_bytes(Path(image(tmp_path, 3).path).read_bytes())
    for which in (0, 1):  # as it was saved, and as the file is now
        engine.load(reference)
        engine.loaded.eos = frozenset()
        engine.try_out()
        found, finished = answered(engine, talks[which], settings, chat="pixels")
        assert found == expected[which]
        first_row = next(at for at, token in enumerate(engine.sequence.tokens) if token >= FIRST_IMAGE_ROW)
        assert (finished.stats.disk_tokens > first_row) == (which == 0)
    engine.forget(tables=True)
    engine._session.release_eyes(rows=True)
    with pytest.raises(RequestError, match="has changed since it was attached"):
        answered(engine, talks[0], settings)


@pytest.mark.sweep
def test_sparse_reading_keeps_images(engine: Engine, pictures: tuple[Image, ...]) -> None:
    document = Attachment(
        "a.txt", "".join(f"The number of box {n} is {n * 7919 % 1000}. " for n in range(40))
    )
    messages = [asked("What is in box 17?", pictures[0], attachments=(document,))]
    sparse: dict[str, Any] = {"prefill.mode": "on", "prefill.scorer": "lexical", "prefill.keep_pct": 10}
    settings = settings_of("off", **{"prefill.chunk_tokens": 64, **sparse})
    expected = cold(engine, messages, settings)
    found, finished = answered(engine, messages, replace(settings, drafting=settings_of("auto").drafting))
    assert found == expected
    assert finished.stats.skipped_tokens > 500
    tokens, columns = engine.sequence.tokens, engine.sequence.columns
    held = [token for token in tokens if token >= FIRST_IMAGE_ROW]
    assert [tokens[at] for at in columns.places(0, columns.count) if tokens[at] >= FIRST_IMAGE_ROW] == held


def test_drafters_tables_and_statistics_never_get_rows(
    engine: Engine, pictures: tuple[Image, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[int] = []
    begin = Writing.begin

    def recorded(self: Writing) -> None:
        answer = self._answer
        kind = answer.drafter
        known = kind.begin
        answer.drafter.begin = lambda prompt, facts: (given.extend(prompt), known(prompt, facts))  # type: ignore
        begin(self)

    monkeypatch.setattr(Writing, "begin", recorded)
    for name in DRAFTING:
        if not DRAFTERS[name].needs_proposer:
            answered(engine, [asked("See.", pictures[0])], settings_of(name, **{"sampling.max_tokens": 8}))
    assert given
    assert max(given) < FIRST_IMAGE_ROW


@pytest.mark.sweep
@pytest.mark.parametrize("drafter", ["draft-model", "auto"])
def test_a_draft_model_that_does_not_see_is_asked_about_text_alone(
    drafter: str, engine: Engine, pictures: tuple[Image, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_toy_model(tmp_path / "draft")
    write_seeing_tokenizer(tmp_path / "draft", Path(engine.loaded.info.path).name)
    chosen = {"draft_model.model": str(tmp_path / "draft"), "sampling.max_tokens": 12}
    settings, first = settings_of(drafter, **chosen), [asked("See.", pictures[0])]
    text = [asked("Say something else.")]
    loaded: list[str] = []
    known = DraftModels._of_family

    def noted(self: DraftModels, reference: str, user: str) -> Any:
        loaded.append(user)
        return known(self, reference, user)

    monkeypatch.setattr(DraftModels, "_of_family", noted)
    engine.forget(tables=True)
    for talk in (first, text, [*first, Message("assistant", "Yes."), *text]):
        del loaded[:]
        _, finished = answered(engine, talk, settings)
        reasons = [change.reason for change in finished.effective.changes]
        assert bool(loaded) == (talk is text)
        assert any("does not see" in reason for reason in reasons) == (talk is not text)


def test_a_chat_with_images_keeps_its_cache_in_full_precision(
    tmp_path: Path, pictures: tuple[Image, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_of("qwen3_5")  # with heads that can be quantised
    config["text_config"]["head_dim"] = 32
    config["text_config"]["rope_parameters"]["mrope_section"] = [4, 4, 4]
    monkeypatch.setattr(seeing, "config_of", lambda family: config)
    write_seeing_model(tmp_path / "model")
    engine = Engine()
    assert not engine.load(str(tmp_path / "model")).kv_why_not
    engine.loaded.eos = frozenset()
    short: dict[str, Any] = {"sampling.max_tokens": 4}
    talk = [asked("See.", pictures[0])]
    found, finished = answered(engine, talk, settings_of("off", **short, **{"kv.bits": "8"}))
    (change,) = finished.effective.changes
    assert (change.setting, change.used) == ("kv.bits", "off")
    assert "images" in change.reason
    assert found == cold(engine, talk, settings_of("off", **short))
    engine.unload()


@pytest.mark.parametrize(
    ("room", "used"), [pytest.param(-3, ["2"], marks=pytest.mark.sweep), (0, ["2"]), (1, [])]
)
def test_a_full_context_drops_the_oldest_images_first(
    room: int, used: list[str], engine: Engine, pictures: tuple[Image, ...]
) -> None:
    """`room` tokens are left for the answer, which needs one."""
    one, _, other = pictures
    talk = [
        asked("One.", one),
        Message("assistant", "Yes."),
        asked("Two.", other),
        Message("assistant", "No."),
    ]
    talk.append(asked("Three?", image(Path(one.path).parent, 5)))
    whole = len(engine._prompt(Generate("", tuple(talk), settings_of()))[0].ids)
    settings = settings_of("off", **{"prefill.context_tokens": whole + room, "sampling.max_tokens": 4})
    _, finished = answered(engine, talk, settings)
    changes = [change for change in finished.effective.changes if change.setting == "images"]
    assert [change.used for change in changes] == used
    assert all(change.asked == "3" for change in changes)


def test_a_model_that_does_not_see_is_told(
    engine: Engine, pictures: tuple[Image, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    eyes = engine._session.eyes()
    messages, settings = [asked("See.", pictures[0])], settings_of("off", **{"sampling.max_tokens": 4})
    _, finished = answered(engine, messages, settings)
    assert eyes.sees
    assert not finished.effective.changes
    with monkeypatch.context() as patch:  # once a model
        patch.setattr(eyes, "new_cache", None)
        answered(engine, messages, settings)
    # The model reads an equal row for each: it cannot tell images apart.
    monkeypatch.setattr(eyes, "sees", None)
    read = engine.loaded.model.__class__.__call__

    def blind(self: Any, inputs: Any, cache: Any = None, input_embeddings: Any = None, **more: Any) -> Any:
        return read(self, inputs, cache=cache, **more)

    monkeypatch.setattr(engine.loaded.model.__class__, "__call__", blind)
    engine.forget()
    _, finished = answered(engine, messages, settings)
    assert [change.used for change in finished.effective.changes] == ["not seen"]
    monkeypatch.undo()
    eyes.sees = None


def test_a_model_without_eyes_says_so(tmp_path: Path, pictures: tuple[Image, ...]) -> None:
    write_toy_model(tmp_path / "toy")
    engine = Engine()
    info = engine.load(str(tmp_path / "toy"))
    assert not info.sees
    assert "text-only" in info.why_unseeing
    with pytest.raises(RequestError, match="cannot see images"):
        next(iter(engine.generate(Generate("", (asked("See.", pictures[0]),)))))
    # Later questions without an image are answered without the earlier ones, which is told.
    settings = settings_of(**{"sampling.max_tokens": 4})
    talk = [asked("See.", pictures[0]), Message("assistant", "Yes."), asked("", *pictures[1:])]
    talk += [Message("assistant", "No."), asked("And?")]
    tokens, finished = answered(engine, talk, settings)
    (change,) = [change for change in finished.effective.changes if change.setting == "images"]
    assert (change.asked, change.used) == ("3", "0")
    assert "cannot see images: it is a text-only model" in change.reason
    plain = [asked("See."), talk[1], asked("…"), *talk[3:]]
    assert tokens == answered(engine, plain, settings)[0]
    with pytest.raises(RequestError, match="cannot see images"):
        next(iter(engine.generate(Generate("", (*talk[:-1], asked("And?", pictures[0]))))))
    # Images of results are named, also in the answer that called the tool.
    called = Message("assistant", "", tool_calls=(ToolCall("a", "look", "{}"),))
    result = Message("tool", "Look:", tool_call_id="a", images=pictures[:1])
    tokens, finished = answered(engine, [asked("And?"), called, result], settings)
    (change,) = [change for change in finished.effective.changes if change.setting == "images"]
    assert (change.asked, change.used) == ("1", "0")
    content = f"Look:\n[image “{pictures[0].name}” left out: this model cannot see]"
    named = replace(result, content=content, images=())
    assert tokens == answered(engine, [asked("And?"), called, named], settings)[0]
