"""An edited answer: which tokens stay, and what the chat and the next request make of it."""

from __future__ import annotations

from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from app.session.chats.answers import Edit, all_typed, cut_after, edits_between, with_edits
from app.session.chats.conversation import AskedOf, Conversation
from app.store.packing import PackedTurn, pack, packed, unpack, unpacked
from core.events import TYPED, Message, Token
from core.settings import Settings
from tests.app.session.words import finished, token

MODEL = "Toy 1M"
texts = st.lists(st.sampled_from(["", "a", "bc", " d", "\n", "日本"]), min_size=1, max_size=12).filter(any)


def tokens_of(*texts: str) -> tuple[Token, ...]:
    return tuple(token(at, "t1", text, "accepted") for at, text in enumerate(texts))


def text_of(tokens: tuple[Token, ...]) -> str:
    return "".join(each.text for each in tokens)


def chat(*texts: str) -> Conversation:
    chat = Conversation("c1", datetime(2026, 5, 4, 12, 0)).ask("t1", Message("user", "Why?"))
    chat = chat.asking("t1", AskedOf(MODEL, Settings())).write("t1", tokens_of(*texts))
    return chat.finish("t1", finished("t1", len(texts), context=9))


@given(texts, st.integers(0, 20), st.integers(0, 20), st.sampled_from(["", "x", "long text\n"]))
def test_an_edit_keeps_the_tokens_that_it_does_not_touch(
    written: list[str], one: int, other: int, typed: str
) -> None:
    tokens = tokens_of(*written)
    source = text_of(tokens)
    start, end = sorted((min(one, len(source)), min(other, len(source))))
    edited = with_edits(tokens, [Edit(start, end, typed)])
    assert text_of(edited) == source[:start] + typed + source[end:]
    assert [each.position for each in edited] == list(range(len(edited)))
    kept = [each for each in edited if each.id != TYPED]
    assert len(edited) - len(kept) <= 1
    by_text = [replace(each, position=0) for each in tokens]
    assert all(replace(each, position=0) in by_text for each in kept)
    # Whole tokens before and after the edit are the model's.
    assert len(text_of(tuple(kept))) >= start + len(source) - end - 4
    cut = cut_after(tokens, end)
    assert text_of(cut).startswith(source[:end])
    assert cut == tokens[: len(cut)]
    assert len(text_of(cut)) - end < 2


@given(
    st.lists(
        st.sampled_from(["the same line\n", "another word, and more ", "x", "日本語です。", "\n"]),
        max_size=30,
    ),
    st.data(),
)
def test_edits_between_two_texts(parts: list[str], data: st.DataObject) -> None:
    other = data.draw(st.permutations(parts)) if parts else ["new"]
    before, after = "".join(parts), "".join(other)
    edits = list(edits_between(before, after))
    assert [at for edit in edits for at in (edit.start, edit.end)] == sorted(
        at for edit in edits for at in (edit.start, edit.end)
    )
    assert list(edits_between(before, before)) == []
    if before:
        tokens = tokens_of(*(before[at : at + 3] for at in range(0, len(before), 3)))
        edited = with_edits(tokens, edits)
        assert text_of(edited) == after
        assert [each.position for each in edited] == list(range(len(edited)))


def test_the_text_between_two_edits_stays_the_models() -> None:
    sentences = [f"Sentence {n} says that item {n} is {n * 7} metres long, in words. " for n in range(400)]
    for separator in ("", "\n\n"):
        before = separator.join(sentences)
        after = before.replace("Sentence 3 ", "Line 3 ").replace("Sentence 390 ", "Line 390 ") + "End."
        edits = list(edits_between(before, after))
        assert [(before[each.start : each.end], each.text) for each in edits] == [
            ("Sentence", "Line"),
            ("Sentence", "Line"),
            ("", "End."),
        ]
    # A rewritten sentence is one edit.
    (edit,) = edits_between("I saw the old man by the sea.", "We met an old woman on the way.")
    assert edit.start == 0


def test_half_characters_and_the_stop_token_are_not_kept() -> None:
    emoji = tokens_of("a", "", "", "😀", "b", "")
    assert [each.text for each in with_edits(emoji, [Edit(1, 2, "")])] == ["a", "", "b"]
    assert [each.text for each in with_edits(emoji, [Edit(1, 1, "-")])] == ["a", "-", "", "", "😀", "b"]
    assert [each.text for each in with_edits(emoji, [Edit(1, 3, "")])] == ["a"]


def test_the_edited_answer_is_a_version_that_the_model_sees_and_can_continue() -> None:
    before = chat("The ", "sky ", "is ", "green", "")
    assert not before.turns[0].answer.can_go_on(MODEL)
    edited = before.edit_answer("t1", "t2", [Edit(11, 16, "blue")])
    turn = edited.turns[0]
    assert [version.answer.text for version in turn.versions] == ["The sky is green", "The sky is blue"]
    assert turn.answer.is_edited
    assert not turn.others[0].answer.is_edited
    assert edited.messages_for_request()[-1] == Message("assistant", "The sky is blue")
    # Another edit does not leave a version behind.
    again = edited.edit_answer("t2", "t3", [Edit(11, 15, "grey")])
    assert [version.id for version in again.turns[0].versions] == ["t1", "t3"]
    # It survives the disk.
    assert unpacked(unpack(pack(packed(again.turns[0])), PackedTurn)) == again.turns[0]
    answer = again.turns[0].answer
    # Continued, it is one answer with the figures of its tokens.
    assert answer.can_go_on(MODEL)
    going = again.go_on("t3", MODEL).write("t3", [token(4, "t3", ",")])
    done = going.finish("t3", finished("r9", 1, "length")).turns[0].answer
    assert (done.text, done.status, done.is_edited) == ("The sky is grey,", "finished", True)
    assert done.finished is not None
    assert done.finished.stats.tokens == 5
    assert [each.id for each in done.tokens] == [7, 7, 7, TYPED, 7]
    # By another model, for which the text is one token.
    going = again.go_on("t3", "another").write("t3", [token(1, "t3", ",")])
    done = going.finish("t3", finished("r9", 1, "length")).turns[0].answer
    assert done.finished is not None
    assert done.finished.stats.tokens == len(done.tokens) == 2


def test_another_model_gets_the_text() -> None:
    edited = chat("The ", "sky").edit_answer("t1", "t2", [Edit(7, 7, "!")])
    assert edited.turns[0].answer.can_go_on("Other 2M")
    tokens = edited.go_on("t2", "Other 2M").turns[0].answer.tokens
    assert [(each.id, each.text) for each in tokens] == [(TYPED, "The sky!")]


def test_an_answer_from_a_file_is_edited_as_a_text() -> None:
    imported = chat("The sky is green")
    tokens = all_typed(imported.turns[0].answer.tokens)
    answer = replace(imported.turns[0].answer, tokens=tokens, status="imported", finished=None)
    assert not answer.is_edited
    imported = imported.with_answer("t1", answer)
    edited = imported.edit_answer("t1", "t2", [Edit(11, 16, "blue")]).turns[0].answer
    assert edited.text == "The sky is blue"
    assert {each.id for each in edited.tokens} == {TYPED}
    assert edited.can_go_on(MODEL)
    cut = imported.cut_answer("t1", "t2", 7).turns[0].answer
    assert cut.text == "The sky"


def test_an_answer_is_cut_after_a_token() -> None:
    before = chat("The ", "sky ", "is ", "green", "")
    cut = before.cut_answer("t1", "t2", 6)
    assert [version.answer.text for version in cut.turns[0].versions] == ["The sky is green", "The sky "]
    assert not cut.turns[0].answer.is_edited
    assert cut.turns[0].answer.finished is not None
    assert cut.turns[0].answer.finished.stats.tokens == 2
    # An edited version stays.
    edited = before.edit_answer("t1", "t2", [Edit(11, 16, "blue")]).cut_answer("t2", "t3", 3)
    assert len(edited.turns[0].versions) == 3
