"""Tests of the detection of answers that repeat themselves."""

from __future__ import annotations

import itertools
import random
import re
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.decoding.repetition import LEAST_TIMES, LEAST_TOKENS, LONGEST_PERIOD, Repetition, repeated_share

ROOT = Path(__file__).parents[3]
_POOL = "the old harbour master keeps his bright lamp near every quiet window until morning comes again"
WORDS = _POOL.split()


def alarm(text: str, question: str = "", *, seed: int | None = None, patient: bool = False) -> int | None:
    """The number of characters after which `text` is a loop; None if it is none.

    The text is divided into words, or at random places by `seed`.
    """
    parts = re.findall(r"\s*\S+|\s+$", text)
    if seed is not None:
        rng = random.Random(seed)
        cuts = sorted({0, len(text), *(rng.randrange(len(text)) for _ in range(len(text) // 4))})
        parts = [text[start:end] for start, end in itertools.pairwise(cuts)]
    repetition = Repetition(question, patient=patient)
    ids: dict[str, int] = {}
    at = 0
    for part in parts:
        at += len(part)
        if repetition.add(ids.setdefault(part, len(ids)), part):
            assert repetition.begins is not None
            return at
    return None


sentences = st.lists(st.sampled_from(WORDS), min_size=5, max_size=16, unique=True)
joints = st.sampled_from([". ", "! ", ".\n", ".\n\n", ", ", "; "])


@settings(max_examples=40)
@given(
    before=st.lists(st.sampled_from(["Plants", "grow", "7", "over", "there."]), max_size=20),
    cycle=st.lists(sentences, min_size=1, max_size=4, unique_by=tuple),
    joint=joints,
    seed=st.integers(0, 99),
)
def test_prose_is_a_loop_when_a_cycle_of_sentences_has_come_three_times(
    before: Sequence[str], cycle: Sequence[Sequence[str]], joint: str, seed: int
) -> None:
    once = "".join(" ".join(each).capitalize() + joint for each in cycle)
    lead = "".join(f"{word} " for word in before)
    found = alarm(lead + once * 9, seed=seed)
    assert found is not None
    assert len(lead) + 2 * len(once) < found <= len(lead) + 3 * len(once) + len(WORDS[2]) + 60
    assert alarm(lead + once * 2, seed=seed) is None


def test_case_punctuation_and_space_do_not_count_and_numbers_do() -> None:
    same = "The plot is paid for by the manager. the plot is paid, for by the manager!\n\n"
    assert alarm(same + "THE PLOT is paid for by the manager. So")
    numbered = "".join(f"The plot {number} is paid for by the manager. " for number in range(20))
    assert alarm(numbered) is None


def test_a_short_sentence_needs_more_times_and_single_words_are_left_to_the_second_rule() -> None:
    assert alarm("The answer is no. " * 3) is None
    assert alarm("The answer is no. " * 5)
    assert alarm("No, no, " * 20) is None
    assert alarm("No, no, " * 200)


def test_the_repetition_begins_after_the_first_time() -> None:
    repetition = Repetition()
    text = (
        "Well, this is so. The lamp is lit every single night. " + "The lamp is lit every single night. " * 9
    )
    for word in re.findall(r"\S+\s*", text):
        if repetition.add(0 if word == "lamp" else hash(word), word):
            break
    assert repetition.begins is not None
    assert text[: repetition.begins].endswith("every single night. ")
    assert text[: repetition.begins].count("The lamp") == 1


LINE = "the member pays the whole yearly fee"
LAID_OUT = {
    "list": f"- {LINE}\n",
    "numbered list": f"1. {LINE}\n",
    "table": f"| {LINE} | 7 |\n",
    "tabs": f"{LINE}\tyes\n",
    "code": "    print(total of all the values)\n",
    "call": 'print("the total of all the values")\n',
    "assignment": "total = the sum of all values;\n",
    "json": '{"name": "the member pays the whole yearly fee"},\n',
    "csv": "one,two,three,four,five,six\n",
    "form": "Name of the paying member: ______\n",
    "verse": "Who let the little dogs out\n",
    "formula": r"\frac{a}{b} plus the sum of all " + "\n",
}


@pytest.mark.parametrize("line", LAID_OUT.values(), ids=LAID_OUT)
def test_what_is_laid_out_may_repeat_itself_up_to_the_long_limit(line: str) -> None:
    assert alarm(line * 6) is None
    assert alarm(line * 300)


def test_code_in_a_fence_may_repeat_itself() -> None:
    assert alarm("See:\n\n```\n" + "the same line of this plain text\n" * 6) is None
    assert alarm("```\nx\n```\n\n" + "The same line of this plain text. " * 6)


@pytest.mark.parametrize(
    "question",
    [
        "Write “I will not talk in class” a hundred times.",
        "Repeat this sentence: it rains again in the old town.",
        "Sing me a song about rain",
        "Schreib das zwanzigmal: Ich rede nicht im Unterricht.",
        "Écris une chanson.",
        "把这句话重复三遍",
    ],
)
def test_a_question_that_requests_a_repetition_gets_one(question: str) -> None:
    assert alarm("I will not talk in the class. " * 6, question) is None
    assert alarm("I will not talk in the class. " * 60, question)
    assert alarm("I will not talk in the class. " * 6, "What did the members decide, and when?")


def test_equal_stems_refrains_and_anaphora_are_no_loops() -> None:
    stems = "".join(f"The first rule of the club is to {word} every day. " for word in WORDS)
    assert alarm(stems) is None
    refrain = "".join(
        f"The {word} is gone now and I am alone.\nAnd the sea sang on and on.\n\n" for word in WORDS
    )
    assert alarm(refrain) is None


def test_a_patient_detector_has_the_second_rule_only() -> None:
    assert alarm("The lamp is lit every single night. " * 6, patient=True) is None
    assert alarm("The lamp is lit every single night. " * 60, patient=True)


def counted(ids: Sequence[int]) -> int | None:
    """After how many tokens without a text `ids` are a loop."""
    repetition = Repetition()
    return next((count for count, each in enumerate(ids, start=1) if repetition.add(each, "")), None)


@given(
    st.lists(st.integers(0, 9), max_size=60),
    st.lists(st.integers(10, 99), min_size=1, max_size=LONGEST_PERIOD),
)
def test_a_loop_of_tokens_is_found_as_soon_as_it_is_certain(before: list[int], loop: list[int]) -> None:
    found = counted(before + loop * 1000)
    assert found is not None
    assert found <= len(before) + max(LEAST_TOKENS, 4 * len(loop))


@pytest.mark.sweep
@given(st.integers(1, LONGEST_PERIOD))
def test_one_token_that_differs_in_each_round_is_no_loop(period: int) -> None:
    ids = [token for round_ in range(60) for token in (*range(1000, 1000 + period), 2000 + round_)]
    assert counted(ids) is None


@pytest.mark.sweep
@pytest.mark.parametrize("ending", ["py", "md", "txt", "json", "toml", "svg"])
def test_no_file_of_this_project_is_taken_for_a_loop(ending: str) -> None:
    files = [
        path
        for folder in ("app", "core", "docs", "resources", "tests/tuning")
        for path in (ROOT / folder).rglob(f"*.{ending}")
    ]
    files += ROOT.glob(f"*.{ending}")
    assert files
    for path in files:
        assert alarm(path.read_text("utf-8")[:100_000]) is None, path


@pytest.mark.parametrize("before", [0, 1, 7, 300])
@pytest.mark.parametrize("period", [1, 2, 59, 60, 61, LONGEST_PERIOD])
def test_a_loop_of_different_tokens_is_found_at_the_token_that_makes_it_certain(
    before: int, period: int
) -> None:
    """And no other one begins where it does."""
    ids = [*range(1000, 1000 + before), *(at % period for at in range(2000))]
    repetition = Repetition()
    found = next(count for count, each in enumerate(ids, start=1) if repetition.add(each, "ab"))
    assert found == before + max(LEAST_TOKENS, LEAST_TIMES * period)
    assert repetition.begins == 2 * (before + period)  # the second time
    assert counted([*range(before), *(at % (LONGEST_PERIOD + 1) + 9000 for at in range(2000))]) is None


@pytest.mark.parametrize("before", ["", "So it goes, in short.\n", "So it goes, in short.\n\n"])
@pytest.mark.parametrize(
    ("mark", "is_prose"),
    [("", True), ("> ", True), ("  > ", True), (">> ", True), ("- ", False), ("* ", False), ("1. ", False),
     ("a) ", False), ("| ", False), ("\t", False), ("     ", False), ("# ", True)],
)  # fmt: skip
def test_the_beginning_of_a_line_tells_whether_it_is_prose(before: str, mark: str, is_prose: bool) -> None:
    text = before + mark + "The plot is paid for by the manager today. " * 3
    assert (alarm(text + "So") is not None) is is_prose


def test_the_repeated_share_counts_only_what_follows_an_earlier_run_in_the_same_way() -> None:
    assert repeated_share(range(100)) == 0
    assert repeated_share([*range(20), *range(20)]) == pytest.approx(12 / 40)
    assert repeated_share([*range(8), 9, *range(8), 10]) == 0


@pytest.mark.quiet
@pytest.mark.parametrize("piece", ["ab", "-+|_"])
def test_text_without_words_takes_linear_time(piece: str) -> None:
    def took_s(tokens: int) -> float:
        repetition, started_s = Repetition(), time.process_time()
        assert not any(repetition.add(token, piece) for token in range(tokens))
        return time.process_time() - started_s

    assert took_s(16_000) < 8 * took_s(4000)
