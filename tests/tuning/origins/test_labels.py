"""The labelled set is consistent: offsets, places and halves are as described."""

from __future__ import annotations

import re
from collections import Counter

from tests.tuning.origins import FOLDER, labelled


def test_each_label_names_the_text_at_its_offsets() -> None:
    for document in labelled():
        for answer in document.answers:
            end = 0
            for label in answer.labels:
                assert answer.answer[label.start : label.end] == label.text, (document.document, label)
                assert end <= label.start < label.end, "labels are in order and do not overlap"
                end = label.end


def test_each_place_is_in_the_document_on_the_right_side_of_what_was_read() -> None:
    for document in labelled():
        text = document.text()
        for answer in document.answers:
            for label in answer.labels:
                assert (label.place is not None) == (label.stands in ("document", "skipped")), label
                if label.place is None:
                    continue
                start, end = label.place
                assert 0 <= start < end <= len(text), label
                skipped = any(first <= start and end <= last for first, last in answer.skipped)
                assert skipped == (label.stands == "skipped"), (document.document, label)


def test_every_digit_of_an_answer_is_labelled() -> None:
    """Ordinals of lists are not figures; nothing else with a digit may be forgotten."""
    for document in labelled():
        for answer in document.answers:
            rest = list(answer.answer)
            for label in answer.labels:
                rest[label.start : label.end] = "·" * (label.end - label.start)
            plain = re.sub(r"^\s*(?:第?\d+号?[.)]|#+ .*)", "", "".join(rest), flags=re.MULTILINE)
            assert not re.search(r"\d", plain), (document.document, answer.question, plain)


def test_the_set_is_as_large_as_described_and_its_halves_have_the_same_languages() -> None:
    documents = labelled()
    assert {each.document for each in documents} == {path.name for path in (FOLDER / "documents").iterdir()}
    assert len(documents) >= 12
    assert len(labelled("tuned")) == len(labelled("held_out"))
    languages = {each.language for each in labelled("tuned")}
    assert languages == {each.language for each in labelled("held_out")}
    assert languages == {each.language for each in labelled("fresh")}
    assert len({(each.document, answer.question) for each in documents for answer in each.answers}) >= 60


def test_the_fresh_half_is_large_enough_to_show_the_shares_that_are_promised() -> None:
    """95% of what stands nowhere and 2% of the others need about a hundred and some hundreds of labels."""
    documents = labelled("fresh")
    stands = Counter(label.stands for each in documents for answer in each.answers for label in answer.labels)
    assert len(documents) >= 7
    assert sum(len(each.answers) for each in documents) >= 45
    assert stands["nowhere"] >= 90
    assert stands.total() - stands["nowhere"] >= 300
    assert all(stands[each] >= 10 for each in ("document", "question", "computed", "skipped")), stands


def test_the_fourth_half_is_large_enough_and_has_other_languages_too() -> None:
    documents = labelled("fourth")
    stands = Counter(label.stands for each in documents for answer in each.answers for label in answer.labels)
    assert len(documents) >= 8
    assert all(7 <= len(each.answers) <= 10 for each in documents)
    assert {each.language for each in documents} > {each.language for each in labelled("fresh")}
    assert stands.total() >= 600
    assert stands["nowhere"] >= 170
    assert all(stands[each] >= 20 for each in ("document", "question", "computed")), stands


def test_the_fifth_half_is_large_enough_and_about_other_kinds_of_documents() -> None:
    documents = labelled("fifth")
    stands = Counter(label.stands for each in documents for answer in each.answers for label in answer.labels)
    assert len(documents) >= 12
    assert all(len(each.answers) >= 6 for each in documents)
    assert {each.language for each in documents} == {"en", "de", "fr", "ja"}
    assert stands.total() >= 1_400
    assert stands["nowhere"] >= 340
    assert all(stands[each] >= 20 for each in ("document", "question", "computed")), stands


def test_the_sixth_half_is_large_enough_and_about_other_kinds_of_documents() -> None:
    documents = labelled("sixth")
    stands = Counter(label.stands for each in documents for answer in each.answers for label in answer.labels)
    assert len(documents) >= 10
    assert all(len(each.answers) >= 5 for each in documents)
    assert Counter(each.language for each in documents) == {"en": 7, "de": 1, "fr": 1, "ja": 1}
    assert stands.total() >= 800
    assert stands["nowhere"] >= 180
    assert all(stands[each] >= 20 for each in ("document", "question", "computed")), stands


def test_a_quotation_or_identifier_that_stands_nowhere_is_not_in_the_document() -> None:
    for document in labelled():
        text = document.text()
        for answer in document.answers:
            for label in answer.labels:
                if label.stands == "nowhere" and label.kind in ("quotation", "identifier"):
                    bare = label.text.strip('"“”„«»「」 ')
                    assert not re.search(rf"(?<!\w){re.escape(bare)}(?!\w)", text), (document.document, label)
