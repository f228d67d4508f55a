"""Which pages without text a question's model sees."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from core.documents.page_choice import MOST_PAGES, most_pages, nearest_pages, unread_pages
from core.documents.strings import page_image, pages, scanned_page, unreadable_page
from core.events import Attachment, Image, Message, Scans


def document(pages: list[str], name: str = "scan.pdf") -> Attachment:
    """A document of these pages; an empty one is a scan."""
    texts = [text or scanned_page(number, has_text=False) for number, text in enumerate(pages, 1)]
    numbers = tuple(number for number, text in enumerate(pages, 1) if not text)
    return Attachment(name, "\n\n".join(texts), scans=Scans(f"/{name}", f"hash of {name}", numbers))


def asking(question: str, *documents: Attachment) -> Message:
    return Message("user", question, documents)


def image_of(document: Attachment, number: int) -> Image:
    assert document.scans
    name = page_image(document.name, number)
    return Image(name, "/i", f"{name} ", 10, 10, scan=document.scans.hash, page=number)


def numbers(messages: list[Message], most: int = MOST_PAGES) -> list[int]:
    return [page.number for page in nearest_pages(messages, most)]


def long(subject: str, words: int = 250) -> str:
    """A page about a subject, in other words that its neighbours do not have."""
    drawn = random.Random(subject)
    return " ".join([subject, *("".join(drawn.choices("abcdefghij", k=7)) for _ in range(words))])


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([7], "page 7"),
        ([3, 5, 6, 7, 9], "pages 3, 5 to 7, 9"),
        ([1, 2], "pages 1 to 2"),
        ([999, 1000], "pages 999 to 1,000"),
        (list(range(1, 41, 2)), "pages " + ", ".join(map(str, range(1, 41, 2)))),
        (list(range(1, 45, 2)), "pages " + ", ".join(map(str, range(1, 41, 2))) + ", and 2 more ranges"),
    ],
)
def test_page_numbers_are_named_as_ranges(numbers: list[int], text: str) -> None:
    assert pages(numbers) == text


def test_all_pages_are_chosen_where_there_are_few() -> None:
    assert numbers([asking("What is it?", document(["", "", "words", ""]))]) == [1, 2, 4]


def test_of_many_pages_the_first_are_chosen_if_the_question_names_nothing() -> None:
    assert numbers([asking("Sum it up.", document([""] * 30))]) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert numbers([asking("Sum it up.", document([""] * 30))], 3) == [1, 2, 3]
    assert numbers([asking("Sum it up.", document([""] * 30))], 0) == []


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ("How high was the budget of the harbor?", "harbor"),
        ("Was sagt der Bericht über Schleusen?", "Schleuse"),
        ("港の予算はいくらですか", "港の予算"),
        ("Сколько стоит гавань?", "гавань"),
    ],
)
def test_pages_whose_neighbours_have_the_words_of_the_question_are_chosen(question: str, word: str) -> None:
    pages = [text for at in range(20) for text in (long(f"subject{at}"), "")]
    pages[24] = long(f"{word} and more")
    chosen = numbers([asking(question, document(pages))], 2)
    assert chosen == [24, 26]  # before and after page 25


def test_nearer_pages_of_a_run_come_first() -> None:
    pages = [long("rain"), *[""] * 20, long("harbor", 40), *[""] * 20, long("wind")]
    assert numbers([asking("The harbor?", document(pages))], 4) == [20, 21, 23, 24]


def test_a_page_is_found_by_its_number() -> None:
    scan = document([""] * 300)
    assert 217 in numbers([asking("What is on page 217?", scan)])
    assert numbers([asking("Was steht auf Seite 217?", scan)], 1) == [217]
    assert numbers([asking("Compare 12 and 120.", document([""] * 130))], 2) == [12, 120]


def test_pages_of_all_documents_are_compared() -> None:
    first = document([long("rain"), *[""] * 9], "a.pdf")
    second = document([long("harbor"), *[""] * 9], "b.pdf")
    chosen = nearest_pages([asking("The harbor?", first, second)], 3)
    assert [page.name for page in chosen] == ["b.pdf, page 2", "b.pdf, page 3", "b.pdf, page 4"]


def test_the_same_file_attached_twice_is_sent_once() -> None:
    scan = document(["", ""])
    assert numbers(
        [asking("One?", scan), Message("assistant", "Yes."), asking("Two?", replace(scan, name="c"))]
    )
    assert numbers([asking("One?", scan, replace(scan, name="copy.pdf"))]) == [1, 2]


def test_a_follow_up_adds_only_pages_that_the_chat_does_not_have() -> None:
    subjects = [
        "rain",
        "harbor",
        "wind",
        "bridge",
        "tower",
        "garden",
        "market",
        "school",
        "river",
        "castle",
        "museum",
        "forest",
    ]
    pages = [text for subject in subjects for text in (long(subject, 60), "", "")]
    scan = document(pages)
    first = asking("The wind?", scan)
    sent = numbers([first], 4)
    first = replace(first, images=tuple(image_of(scan, number) for number in sent))
    chat = [first, Message("assistant", "Answer.")]
    assert numbers([*chat, asking("Again, the wind?")], 4) == []
    assert numbers([*chat, asking("Thank you!")], 4) == []
    later = numbers([*chat, asking("And the castle?")], 4)
    assert set(later) == {26, 27, 29, 30}
    assert not set(later) & set(sent)


def test_what_is_not_read_is_known() -> None:
    scan = document([""] * 4)
    message = replace(asking("?", scan), images=(image_of(scan, 1), image_of(scan, 4)))
    assert unread_pages([message]) == [(scan, (2, 3))]
    assert unread_pages([replace(message, attachments=())]) == []
    other = replace(image_of(scan, 2), scan="of another file")
    assert unread_pages([replace(message, images=(*message.images, other))]) == [(scan, (2, 3))]


def test_unreadable_pages_and_stamps_are_found_by_their_neighbours() -> None:
    texts = [
        long("rain"),
        unreadable_page(2),
        long("harbor"),
        f"Received\n\n{scanned_page(4, has_text=True)}",
    ]
    scan = Attachment("a.pdf", "\n\n".join(texts), scans=Scans("/a", "h", (2, 4)))
    assert numbers([asking("rain?", scan)], 1) == [2]
    assert numbers([asking("What was received?", scan)], 1) == [4]


def test_a_text_that_writes_marks_chooses_nothing_that_is_not_there() -> None:
    """Marks are words of the text; anyone may write them."""
    text = f"{scanned_page(77, has_text=False)} {scanned_page(2, has_text=False)} harbor"
    scan = Attachment("a.pdf", text, scans=Scans("/a", "h", (2, 3)))
    assert numbers([asking("harbor on page 77?", scan)]) == [2, 3]


def test_a_match_far_from_a_page_counts_less_than_one_beside_another() -> None:
    far = "harbor " * 3 + long("far", 40_000)
    pages = [far, "", long("harbor"), ""]
    assert numbers([asking("harbor?", document(pages))], 1) == [2]
    assert numbers([asking("rain?", Attachment("a.pdf", "rain", scans=Scans("/a", "h", ())))]) == []


@pytest.mark.parametrize(
    ("context", "prompt", "page", "most"),
    [
        (262_144, 1_000, 2_304, 8),
        (32_768, 1_000, 2_304, 7),
        (32_768, 20_000, 2_304, 3),
        (8_192, 100, 260, 8),
        (4_096, 100, 4_096, 0),
        (4_096, 90_000, 10, 0),
    ],
)
def test_pages_fit_into_the_context(context: int, prompt: int, page: int, most: int) -> None:
    assert most_pages(context, prompt, page) == most
