"""The passage of a search's hit: one line around the first match, with all matches marked."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from app.session.chats.archive import passage_of

WORDS = st.sampled_from(["fog", "Fog", "FO", "a", "harbour", "İzmir", "so", ",", "\n", "  ", "og"])


@settings(max_examples=150)
@given(
    st.lists(WORDS, max_size=60).map(" ".join),
    st.lists(st.sampled_from(["fog", "FOG", "harb", "g", "izm", "nowhere"]), min_size=1, max_size=3),
    st.sampled_from([5, 40]),
)
def test_every_match_on_the_line_is_marked(text: str, words: list[str], around: int) -> None:
    passage, marks = passage_of(text, words, around)
    line = " ".join(text.split())
    inner = passage.removeprefix("…").removesuffix("…")
    at = line.find(inner)
    assert at >= 0
    assert passage.startswith("…") == (not line.startswith(inner))
    assert passage.endswith("…") == (not line.endswith(inner))
    assert len(inner) <= 4 * around

    def low(of: str) -> str:
        return "".join(letter.lower()[0] for letter in of)

    expected = {
        (start, start + len(word))
        for word in words
        for start in range(len(passage))
        if low(passage)[start : start + len(word)] == word.lower()
        and "…" not in passage[start : start + len(word)]
    }
    assert list(marks) == sorted(marks)
    found = {start for start, _ in marks}
    assert set(marks) <= expected
    # Matches that overlap are marked once.
    assert all(any(one <= start < one + 7 for one in found) for start, _ in expected)
    places = [low(line).find(word.lower()) for word in words]
    first = min((place for place in places if place >= 0), default=-1)
    if first >= 0:
        begin = line.index(inner)
        assert begin <= first
        assert any(begin + start - passage.startswith("…") == first for start in found)
        # It begins at a word, if there is one near.
        assert begin == 0 or line[begin - 1] == " " or " " not in line[max(0, first - around) : first]
    else:
        assert marks == ()
        assert line.startswith(inner)
