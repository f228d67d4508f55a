"""Two tables asked as one."""

from __future__ import annotations

from core.drafting.evidence.learned import Learned
from core.drafting.tables.joined import Joined
from core.tables.prebuilt.gram_count import GramCounter, Pruning


def counted(*texts: list[int]) -> GramCounter:
    counter = GramCounter(2)
    for text in texts:
        counter.add((), text)
    return counter


PRUNING = Pruning(highest_order=2)
ANSWERS = counted([1, 2, 3], [1, 2, 3], [6, 2, 5]).table(PRUNING)
TEXTS = counted(*([[1, 2, 4]] * 50), *([[6, 2, 9]] * 50), *([[7, 8, 9]] * 50)).table(PRUNING)


def test_rows_come_longest_first_and_the_answers_own_before_the_texts() -> None:
    rows = Joined(ANSWERS, TEXTS).look([1, 2])
    assert [row.order for row in rows] == [2, 2, 1, 1, 0]
    assert [row.followers[0][0] for row in rows[:3]] == [3, 4, 3]
    assert rows[4] == ANSWERS.look([])[0], "which words are frequent in texts is not asked"


def test_what_the_model_says_outweighs_many_texts() -> None:
    likely = Learned(Joined(ANSWERS, TEXTS)).after((1, 2)).likely
    assert likely[3] > 0.6
    assert likely[3] > 4 * likely[4]
    assert likely[4] > Learned(Joined(ANSWERS, None)).after((1, 2)).likely.get(4, 0.0)
    # Not even where a text knows the longer context.
    once = counted([9, 2, 4], [8, 2, 7]).table(PRUNING)
    likely = Learned(Joined(ANSWERS, once)).after((9, 2)).likely
    assert likely[3] > 4 * likely[4]


def test_texts_speak_where_the_answers_are_silent() -> None:
    for table in (Joined(ANSWERS, TEXTS), Joined(None, TEXTS)):
        likely = Learned(table).after((7, 8)).likely
        assert max(likely, key=lambda token: likely[token]) == 9
    assert Joined(None, TEXTS).look([])[0].order == 0


def test_one_table_alone_is_itself() -> None:
    assert Joined(ANSWERS, None).look([1, 2]) == ANSWERS.look([1, 2])
    assert Joined(None, None).look([1, 2]) == []
