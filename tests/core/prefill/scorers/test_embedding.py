"""embedding and fusion: a passage that says it in other words is found; without vectors words alone count."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from mlx_lm.tokenizer_utils import TokenizerWrapper
from mlx_lm.utils import load_tokenizer
from msgspec.structs import replace

from core.bench.retrieval import documents, questions
from core.encoder.store import Embedder, VectorStore
from core.errors import EncoderUnavailableError
from core.events import Attachment, Message
from core.machine.profile import finished
from core.prefill.layout import layout, unknown_layout
from core.prefill.plan import select
from core.prefill.scorers import SCORERS
from core.prefill.scorers.embedding import (
    _ACCENTED_SHARE,
    Meaning,
    _is_accented,
    fused,
    matches,
    meaning_of,
)
from core.prefill.scorers.scorer import Scored, ScorerInputs
from core.prefill.words import words_of
from core.prompt import offsets, render
from core.settings.prefill import Prefill

PLAIN = [
    "The harbour office opens at nine, and closes at noon on market days. ",
    "A pilot writes the names of all ships into the book before he goes home. ",
    "Coal is landed at the east quay, and timber beside the old crane. ",
    "In winter the lamps are lit at four, and put out when the last boat is in. ",
]
ANSWER = "Dogs must be kept on a leash along the promenade, or their owners pay forty crowns. "
PARAPHRASE = "May I take my hound off its lead by the sea?"
CHINESE = "港口的引水员要等到涨潮以后才解开缆绳。港务长每天早晨签署航海日志。" * 12

GERMAN = (
    "Die Hafenmeisterin unterschreibt jeden Morgen das Logbuch. Der Lotse wartet die Flut ab, bevor er "
    "ablegt. Kohlen werden am östlichen Kai gelöscht, Bauholz neben dem alten Kran. "
) * 8


def document(at: int) -> str:
    sentences = [PLAIN[number % 4] for number in range(36)]
    sentences[at] = ANSWER
    return "".join(sentences)


@pytest.fixture(scope="module")
def tokenizer(toy_folder: Path) -> TokenizerWrapper:
    return load_tokenizer(toy_folder)


@pytest.fixture(scope="module")
def embedder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedder]:
    embedder = Embedder(VectorStore(tmp_path_factory.mktemp("vectors")))
    yield embedder
    embedder.unload()


def inputs_of(
    tokenizer: TokenizerWrapper,
    text: str,
    question: str,
    embedder: Embedder | None,
    copies: int = 1,
    **values: Any,
) -> ScorerInputs:
    prompt = render(tokenizer, (Message("user", question, (Attachment("a.txt", text),) * copies),))
    parts = layout(prompt, offsets(tokenizer, prompt))
    settings = Prefill(**values)
    loaded: Any = SimpleNamespace(tokenizer=tokenizer, word_rank=lambda word: 0.0)
    return ScorerInputs(
        loaded,
        prompt.ids,
        parts,
        parts.passages(0, len(prompt.ids), settings),
        words_of(tokenizer.convert_ids_to_tokens(prompt.ids)),
        settings,
        embedder=embedder,
    )


def place_of(inputs: ScorerInputs, tokenizer: TokenizerWrapper, scored: Scored, words: str) -> int:
    """The rank of the passage that holds `words`, 0 for the best."""
    firsts = inputs.passages.firsts
    texts = [
        str(tokenizer.decode(inputs.ids[first : first + length]))
        for first, length in zip(firsts, inputs.passages.lengths)
    ]
    (at,) = [number for number, text in enumerate(texts) if words in text]
    return int((scored.scores > scored.scores[at]).sum())


@pytest.mark.parametrize("passages", ["sentences", "fixed"])
@pytest.mark.parametrize("scorer", ["fusion"])
def test_what_is_said_in_other_words_is_found(
    tokenizer: TokenizerWrapper,
    embedder: Embedder,
    scorer: str,
    passages: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("core.prefill.layout.PASSAGE_TOKENS", 96)  # the toy's tokens are characters
    inputs = inputs_of(tokenizer, document(20), PARAPHRASE, embedder, passages=passages)
    by_words = finished(SCORERS["lexical"].score(inputs))
    scored = finished(SCORERS[scorer].score(inputs))
    assert scored.scores.dtype == np.float32
    assert scored.scores.shape == (len(inputs.passages),)
    assert (scored.used, scored.without) == ("", "")
    assert place_of(inputs, tokenizer, scored, "leash") <= 8
    assert scored.stands_out
    assert not by_words.stands_out


@pytest.mark.sweep
def test_progress_is_told_while_texts_are_embedded_and_the_question_once(
    tokenizer: TokenizerWrapper, tmp_path: Path
) -> None:
    asked: list[str] = []

    class Counting(Embedder):
        def query(self, text: str) -> Any:
            asked.append(text)
            return super().query(text)

    fresh = Counting(VectorStore(tmp_path))
    scoring = SCORERS["fusion"].score(inputs_of(tokenizer, document(5) * 2, PARAPHRASE, fresh, 3))
    steps = list(scoring)
    done, left = [step.tokens for step in steps], [step.left_tokens for step in steps]
    assert len(done) > 3
    assert done == sorted(done)
    assert done[-1] > 0
    assert left == sorted(left, reverse=True)  # of the text that has no vectors yet
    assert left[-1] == 0.0
    assert asked == [PARAPHRASE]
    again = SCORERS["fusion"].score(inputs_of(tokenizer, document(5) * 2, "Who signs?", fresh))
    again_left = [step.left_tokens for step in again]
    assert len(again_left) < len(done)  # from the disk
    assert set(again_left) == {0.0}
    fresh.unload()


@pytest.mark.parametrize("question", ["Summarise this.", "Translate the text into French.", "Proofread it."])
def test_requests_for_the_whole_stand_out_nowhere(
    tokenizer: TokenizerWrapper, embedder: Embedder, question: str
) -> None:
    scored = finished(SCORERS["fusion"].score(inputs_of(tokenizer, document(20), question, embedder)))
    assert not scored.stands_out


@pytest.mark.parametrize("scorer", ["fusion"])
def test_without_the_encoder_words_alone_score_and_say_why(
    tokenizer: TokenizerWrapper, tmp_path: Path, scorer: str
) -> None:
    def missing() -> Any:
        raise EncoderUnavailableError("The sentence encoder is damaged.", "Install Draftlight again.")

    inputs = inputs_of(tokenizer, document(20), PARAPHRASE, Embedder(VectorStore(tmp_path), missing))
    scored = finished(SCORERS[scorer].score(inputs))
    by_words = finished(SCORERS["lexical"].score(inputs))
    assert scored.scores.tolist() == by_words.scores.tolist()
    assert scored.used == "lexical"
    assert "damaged" in scored.without


def test_a_language_that_the_encoder_does_not_know_is_scored_by_words(
    tokenizer: TokenizerWrapper, embedder: Embedder
) -> None:
    inputs = inputs_of(tokenizer, CHINESE, "谁签署航海日志？", embedder)
    scored = finished(SCORERS["fusion"].score(inputs))
    assert scored.used == "lexical"
    assert "language" in scored.without


@pytest.mark.parametrize(("chosen", "says"), [("auto", False), ("fusion", True)])
def test_token_ids_alone_are_scored_by_words(
    tokenizer: TokenizerWrapper, embedder: Embedder, chosen: str, says: bool
) -> None:
    inputs = inputs_of(tokenizer, document(3), PARAPHRASE, embedder, scorer=chosen)
    unknown = unknown_layout(len(inputs.ids))
    alone = replace(inputs, layout=unknown, passages=unknown.passages(0, len(inputs.ids), inputs.settings))
    scored = finished(SCORERS["fusion"].score(alone))
    assert scored.used == "lexical"
    assert bool(scored.without) == says


def test_ranks_are_added_and_words_stand_in_for_what_has_no_vector() -> None:
    words = np.array([3.0, 2.0, 1.0, 0.0], np.float32)
    similarity = np.array([0.1, 2.0, np.nan, 1.0], np.float32)
    found = fused(words, similarity)
    assert 2 * found == pytest.approx([1 / 20 + 1 / 22, 1 / 21 + 1 / 20, 2 / 22, 1 / 23 + 1 / 21])
    assert fused(words, np.full(4, np.nan, np.float32)).argsort().tolist() == [3, 2, 1, 0]


@pytest.mark.sweep
def test_meaning_counts_less_in_a_language_that_the_encoder_knows_badly(
    tokenizer: TokenizerWrapper, embedder: Embedder
) -> None:
    """The words of a German text are cut into two pieces each."""
    question = "Wer unterschreibt das Logbuch?"
    identifiers = "The dataclass_transform of allow_unset_schema calls validate_json_schema2. " * 12
    for text, share, fragmented in (
        *((GERMAN, 1 / 6, True), (document(3), 1 / 2, False)),
        (identifiers, 1 / 2, False),  # cut into as many pieces, and English
    ):
        work = meaning_of(inputs_of(tokenizer, text, question, embedder))
        try:
            while True:
                next(work)
        except StopIteration as end:
            meaning: Meaning = end.value
        assert (meaning.fragmented, meaning.foreign) == (fragmented, False)
        found = meaning.share[~np.isnan(meaning.similarity)]
        assert np.median(found) == pytest.approx(share)
    words, similar = np.arange(40, 0, -1.0, np.float32), np.arange(40, dtype=np.float32)
    assert fused(words, similar, np.full(40, 1 / 6, np.float32)).argmax() == 0


def scored(*, by_words: bool = False, clearness: float = 0.0) -> Scored:
    return Scored(np.zeros(3, np.float32), by_words, clearness)


def test_signs_in_words_need_less_similarity() -> None:
    half = np.full(3, 0.5, np.float32)
    some = Meaning(np.array([0.1, np.nan, 0.8], np.float32), half)
    near = replace(some, similarity=some.similarity + 1.0)
    assert matches(some, scored(by_words=True), about_all=False)
    assert not matches(some, scored(), about_all=False)
    assert matches(near, scored(), about_all=False)
    assert not matches(
        replace(some, similarity=some.similarity - 0.5), scored(by_words=True), about_all=False
    )


def test_a_request_about_all_of_a_text_needs_a_very_similar_passage() -> None:
    """“How many of the paddles are rotten?” is about one passage, “How many names are there?” about all."""
    half = np.full(3, 0.5, np.float32)
    some = Meaning(np.array([0.1, np.nan, 0.8], np.float32), half)
    assert not matches(some, scored(by_words=True), about_all=True)
    assert matches(replace(some, similarity=some.similarity + 0.5), scored(), about_all=True)


def test_in_a_language_that_the_encoder_knows_badly_words_decide() -> None:
    """There all passages are similar to any request in the language, “Fasse das zusammen.” too."""
    near = Meaning(np.full(3, 1.5, np.float32), np.full(3, 1 / 6, np.float32), fragmented=True)
    assert not matches(near, scored(by_words=True, clearness=1.9), about_all=False)
    assert matches(near, scored(clearness=2.6), about_all=False)
    assert not matches(near, scored(clearness=9.0), about_all=True)


@pytest.mark.sweep
def test_what_is_asked_in_quite_other_words_than_a_real_document_s_is_found(
    tokenizer: TokenizerWrapper, embedder: Embedder
) -> None:
    """A licence, and a question of `bench retrieval` that words alone do not find."""
    (licence,) = (each for each in documents() if each.name == "hypothesis-licence")
    (question,) = (each for each in questions() if each.question.startswith("If I sell paid maintenance"))
    text = licence.text()
    assert text is not None
    inputs = inputs_of(tokenizer, text, question.question, embedder)
    found = inputs.layout
    protected, gold = found.protected | found.question, np.zeros(len(inputs.ids), np.bool_)
    for first, last in question.gold:
        gold |= (found.source == 0) & (found.first_char < last) & (found.last_char > first)
    shares = {}
    for name in ("lexical", "fusion"):
        scored = finished(SCORERS[name].score(inputs))
        chosen = select(scored.scores, protected, inputs.passages, keep_pct=12.0)
        shares[name] = np.repeat(chosen.kept, inputs.passages.lengths)[gold].mean()
        assert name == "lexical" or scored.stands_out
    assert shares == {"lexical": 0.0, "fusion": 1.0}


@pytest.mark.parametrize("letter", "aAmzZ")
def test_the_share_of_accents_is_that_of_all_latin_letters(letter: str) -> None:
    letters = 1000
    least = int(_ACCENTED_SHARE * letters)
    assert not _is_accented(letter * letters + "é" * least)
    assert _is_accented(letter * letters + "é" * (least + 1))
    assert not _is_accented(letter * letters + "[{1 @" * least)
