"""Passage vectors: meaning, windows, languages, and similarity on hand-made vectors."""

from __future__ import annotations

import numpy as np
import pytest

from core.encoder.encoder import TextVectors, embed, query_vector, similarity
from core.machine.profile import finished
from tests.core.encoder.texts import SENTENCES, passages_of, shipped_encoder

QUESTIONS = (
    "Where does the kitten take its nap?",
    "How did the company's revenue develop?",
    "Why is the boat delayed in stormy weather?",
    "What comes first when baking the dough?",
    "What to do about a high temperature of an ill person?",
    "What does the build say about bad syntax?",
)


@pytest.mark.parametrize("index", range(len(QUESTIONS)))
def test_a_question_in_other_words_is_nearest_to_its_sentence(index: int) -> None:
    text, passages = passages_of(SENTENCES)
    vectors = finished(embed(shipped_encoder(), text, passages))
    means = vectors.means.astype(np.float32)
    cosines = means @ query_vector(shipped_encoder(), QUESTIONS[index]) / np.linalg.norm(means, axis=1)
    assert int(cosines.argmax()) == index


@pytest.mark.sweep
def test_vectors_have_the_promised_shapes_and_count_every_piece() -> None:
    text, passages = passages_of(SENTENCES * 20)
    vectors = finished(embed(shipped_encoder(), text, passages))
    ids, _ = shipped_encoder().pieces(text)
    assert vectors.means.dtype == np.float16
    assert vectors.means.shape == (len(passages), 384)
    assert vectors.counts.dtype == np.int32
    assert vectors.counts.sum() == len(ids)


def test_a_piece_is_the_weighted_mean_of_its_two_windows() -> None:
    encoder = shipped_encoder()
    text, _ = passages_of(SENTENCES * 4)
    ids, ranges = encoder.pieces(text)
    assert 189 < len(ids) < 252
    piece = 100
    vectors = finished(embed(encoder, text, ranges[piece : piece + 1]))
    first, second = np.array(encoder.states([ids[:126], ids[63:189]]))
    weights = 126 - piece, piece - 63 + 1
    expected = (first[piece + 1] * weights[0] + second[piece - 63 + 1] * weights[1]) / sum(weights)
    assert np.abs(vectors.means[0] - expected).max() < 2e-3


@pytest.mark.sweep
def test_windows_that_reach_no_passage_are_skipped_and_change_nothing() -> None:
    text, passages = passages_of(SENTENCES * 16)
    whole = finished(embed(shipped_encoder(), text, passages))
    chosen = passages[[3, 70]]
    steps = [done for done in embed(shipped_encoder(), text, chosen) if done]
    assert len(steps) <= 2
    some = finished(embed(shipped_encoder(), text, chosen))
    assert np.abs(some.means - whole.means[[3, 70]]).max() < 2e-3


def test_long_texts_are_cut_in_segments_with_ranges_of_the_whole_text() -> None:
    word = "harbour "
    text = word * 9_000
    passages = np.array([[i, i + 400] for i in range(0, len(text), 400)], np.int32)
    work = embed(shipped_encoder(), text, passages)
    assert [next(work) for _ in range(3)] == [0, 0, 0]
    work.close()
    assert finished(embed(shipped_encoder(), text, passages[-1:])).counts.tolist() == [50]


@pytest.mark.parametrize("text", ["", "   \n", "\u200b"])
def test_texts_without_pieces_have_zero_vectors(text: str) -> None:
    vectors = finished(embed(shipped_encoder(), text, np.array([[0, len(text)]], np.int32)))
    assert vectors.counts.tolist() == [0]
    assert not vectors.means.any()
    assert similarity(vectors, query_vector(shipped_encoder(), "anything")).tolist() == [0.0]
    none = finished(embed(shipped_encoder(), text, np.zeros((0, 2), np.int32)))
    assert similarity(none, query_vector(shipped_encoder(), "anything")).shape == (0,)


def test_similarity_adds_the_passage_its_neighbours_and_the_best_four() -> None:
    means = np.zeros((6, 384), np.float16)
    means[np.arange(6), np.arange(6)] = 1
    vectors = TextVectors(means, np.array([1, 1, 3, 1, 1, 1], np.int32), 0.0, 1.0)
    query = np.zeros(384, np.float32)
    query[2] = 1
    four = 3 / np.sqrt(12)  # any four in a row that hold passage 2
    near = 3 / np.sqrt(11)
    expected = [four, near + four, 1 + near + four, near + four, four, four]
    assert similarity(vectors, query) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("text", "unknown", "pieces_per_word"),
    [
        (
            "The pilot of berth seven waits for the tide before he brings the ship into the harbour."
            " Meanwhile the crew prepares the cargo and checks that all papers are complete.",
            (0, 0),
            (1, 1.6),
        ),
        (
            "for (int tokenIndex = 0; tokenIndex < maxTokens; tokenIndex++) {"
            " String line = reader.readLine(); if (line == null) return emptyResult; }",
            (0, 0),
            (1, 1.6),
        ),
        (
            "Der Lotse von Liegeplatz sieben wartet auf die Flut, bevor er das Schiff in den Hafen bringt."
            " Die Besatzung bereitet unterdessen die Ladung vor und prüft, ob alle Papiere vollständig sind.",
            (0, 0),
            (1.6, 3.5),
        ),
        (
            "Le pilote du poste sept attend la marée avant de conduire le navire dans le port. L'équipage"
            " prépare entre-temps la cargaison et vérifie que tous les papiers sont complets.",
            (0, 0),
            (1.6, 3.5),
        ),
        (
            "El piloto del muelle siete espera la marea antes de llevar el barco al puerto."
            " Mientras tanto, la tripulación prepara la carga y comprueba los documentos.",
            (0, 0),
            (1.6, 3.5),
        ),
        ("引航员在把船引入港口之前等待涨潮。", (1, 1), (3, 20)),
        ("水先人は、船を港に入れる前に満ち潮を待ちます。", (1, 1), (3, 20)),
        ("도선사는 배를 항구로 들이기 전에 밀물을 기다린다.", (1, 1), (3, 20)),
        ("ينتظر مرشد الرصيف السابع المد قبل أن يدخل السفينة.", (0.9, 1), (3, 20)),
        ("पायलट ज्वार की प्रतीक्षा करता है।", (0.9, 1), (1.6, 20)),
        ("Лоцман седьмого причала ждёт прилива.", (0.8, 1), (3, 20)),
        ("นำร่องของท่าเทียบเรือหมายเลขเจ็ดรอน้ำขึ้นก่อนนำเรือเข้าท่าเรือ", (1, 1), (0, 20)),
        ("12345 + 678", (0, 0), (0, 0)),
    ],
)
def test_languages_that_the_vocabulary_lacks_are_told_by_two_figures(
    text: str, unknown: tuple[float, float], pieces_per_word: tuple[float, float]
) -> None:
    vectors = finished(embed(shipped_encoder(), text, np.array([[0, len(text)]], np.int32)))
    assert unknown[0] <= vectors.unknown <= unknown[1]
    assert pieces_per_word[0] <= vectors.pieces_per_word <= pieces_per_word[1]
