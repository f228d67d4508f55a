"""What two versions have in common."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.features.compare import difference


def words(text: str, stretches: tuple[object, ...], common: bool) -> list[str]:
    return [text[s.start : s.end] for s in stretches if s.common is common]  # type: ignore[attr-defined]


def test_a_changed_word_is_marked_whole() -> None:
    left, right = "The red boat sails.", "The green boat sails."
    found = difference(left, right)
    assert words(left, found.left, False) == ["red"]
    assert words(right, found.right, False) == ["green"]
    assert 0.7 < found.alike < 0.9


@given(st.text(alphabet="ab .", max_size=30), st.text(alphabet="ab .", max_size=30))
def test_stretches_cover_both_texts_and_common_ones_are_the_same(left: str, right: str) -> None:
    found = difference(left, right)
    for text, stretches in ((left, found.left), (right, found.right)):
        assert "".join(text[s.start : s.end] for s in stretches) == text
    assert words(left, found.left, True) == words(right, found.right, True)
    assert (found.alike == 1.0) or left != right
