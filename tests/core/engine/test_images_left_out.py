"""Images that an answer goes without: which are left out, and what the answer says of them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from core.engine.prompts import (
    asks_with_images,
    left_out_images,
    unread_page_changes,
    unseen_images,
    without_images,
    without_oldest_images,
)
from core.events import Attachment, Change, Image, Message, Scans
from tests.core.prompt.test_lengths import INFO


def image(rows: int, **more: object) -> Image:
    """An image that takes `rows` tokens, by its width."""
    return replace(Image("a.png", "/a.png", "0" * 64, max(1, rows), 8), **more)


def rows_of(image: Image) -> range:
    return range(image.width)


CHATS = st.lists(
    st.tuples(st.sampled_from(["", " ", "Why?"]), st.lists(st.integers(1, 9), max_size=3)),
    min_size=1,
    max_size=5,
).map(
    lambda turns: tuple(
        Message(("user", "assistant", "tool")[at % 3], words, images=tuple(map(image, rows)))
        for at, (words, rows) in enumerate(turns)
    )
)


@settings(max_examples=80)
@given(CHATS, st.integers(0, 40))
def test_the_oldest_images_are_left_out_until_it_fits(chat: tuple[Message, ...], tokens: int) -> None:
    found = without_oldest_images(chat, tokens, rows_of)
    before = [each for message in chat[:-1] for each in message.images]
    kept = [each for message in found[:-1] for each in message.images]
    left = len(before) - len(kept)
    assert kept == before[left:], "the newest stay, in order"
    assert found[-1] == chat[-1], "the question keeps its own"
    freed = [each.width for each in before[:left]]
    assert sum(freed) >= min(tokens, sum(each.width for each in before))
    assert not freed or sum(freed[:-1]) < tokens, "no more than necessary"
    for given_turn, turn in zip(chat, found, strict=True):
        lost_all = given_turn.images and not (turn.images or given_turn.content.strip())
        assert turn.content == ("…" if lost_all else given_turn.content)


@given(CHATS)
def test_a_model_that_cannot_see_gets_every_turn_without_images(chat: tuple[Message, ...]) -> None:
    found = without_images(chat)
    assert not any(each.images for each in found)
    for each, given_turn in zip(found, chat, strict=True):
        count = len(given_turn.images) if given_turn.role == "tool" else 0
        assert each.content.count("[image “a.png” left out: this model cannot see]") == count
        assert each.content.startswith(given_turn.content.strip())
        if given_turn.images and not given_turn.content.strip():
            assert each.content.strip()
    *_, last = (each for each in chat if each.role == "user")
    assert asks_with_images(chat) == bool(last.images), "images of results are named instead"


def test_changes_say_how_many_images_the_answer_had() -> None:
    chat = [Message("user", "", images=(image(3),) * 2), Message("user", "", images=(image(3),))]
    left = left_out_images(chat, 2)
    assert (left.setting, left.asked, left.used) == ("images", "3", "1")
    for why, words in (("", "it has no part for images"), ("its tower is missing", "its tower is missing")):
        found = unseen_images(chat, replace(INFO, why_unseeing=why))
        assert found == Change("images", "3", "0", f"Toy cannot see images: {words}")


def test_changes_name_the_pages_that_were_not_read() -> None:
    scan = Attachment("a.pdf", "", scans=Scans("/a.pdf", "1" * 64, (2, 3, 7)))
    page = image(3, scan="1" * 64, page=3)
    chat = [Message("user", "Why?", (scan,), images=(page,))]
    (change,) = unread_page_changes(chat)
    assert (change.asked, change.used) == ("3 pages", "1 pages")
    assert change.reason.startswith("pages 2, 7 of a.pdf were not read: they are images")
    (one,) = unread_page_changes([replace(chat[0], images=(page, image(3, scan="1" * 64, page=2)))])
    assert one.reason.startswith("page 7 of a.pdf was not read: it is an image")
    whole = replace(chat[0], images=tuple(image(3, scan="1" * 64, page=number) for number in (2, 3, 7)))
    assert unread_page_changes([whole]) == ()
