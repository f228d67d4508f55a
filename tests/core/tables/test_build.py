"""Counting a corpus gives the table that counting by hand gives, and a corpus is read completely."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.drafting.cacheback import pairs
from core.errors import RequestError
from core.tables import build
from core.tables.build import Corpus, LeaderCount, Shape

Gram = tuple[int, ...]


def by_hand(texts: Sequence[Sequence[int]], shape: Shape) -> dict[Gram, tuple[Gram, ...]]:
    totals: Counter[Gram] = Counter()
    followers: dict[Gram, Counter[Gram]] = {}
    for text in texts:
        for leader, follower in pairs(text, shape.leader_tokens, shape.follower_tokens):
            totals[leader] += 1
            followers.setdefault(leader, Counter())[follower] += 1
    kept = {
        leader: [
            gram
            for gram, count in sorted(held.items(), key=lambda item: (-item[1], item[0]))
            if count >= shape.least_count
        ][: shape.followers]
        for leader, held in followers.items()
    }
    best = sorted((k for k in kept if kept[k]), key=lambda leader: (-totals[leader], leader))[: shape.leaders]
    return {leader: tuple(kept[leader]) for leader in best}


def counted(
    texts: Sequence[Sequence[int]], shape: Shape, rows: int, vocabulary: int = 300
) -> dict[Gram, tuple[Gram, ...]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "_ROWS", rows)
        count = LeaderCount(shape, vocabulary)
        for text in texts:
            count.add(text)
        return dict(count.table().entries())


@pytest.mark.parametrize("rows", [7, 100, 10_000])
@pytest.mark.parametrize(
    "shape", [Shape(1, 3, 50, 4), Shape(2, 1, 5, 128), Shape(3, 2, 1000, 2, 2), Shape(1, 1, 3, 1)]
)
@pytest.mark.parametrize("vocabulary", [300, 100_000])
def test_as_by_hand(rows: int, shape: Shape, vocabulary: int) -> None:
    rng = random.Random(rows)
    texts = [
        [rng.choice([0, 1, 2, 3, 255, 256, vocabulary - 1]) for _ in range(rng.randrange(300))]
        for _ in range(5)
    ]
    found = counted(texts, shape, rows, vocabulary)
    expected = by_hand(texts, shape)
    assert found == expected
    assert list(found) == list(expected), "most frequent leaders first"


@given(st.lists(st.lists(st.integers(0, 5), max_size=40), max_size=5), st.integers(1, 30))
@settings(deadline=None, max_examples=40)
def test_any_text_any_run_length(texts: list[list[int]], rows: int) -> None:
    shape = Shape(1, 2, 4, 3)
    assert counted(texts, shape, rows) == by_hand(texts, shape)


@pytest.mark.parametrize("cut", [1, 2, 3, 4, 10, 99])
def test_a_text_in_pieces_is_the_same_text(cut: int) -> None:
    rng = random.Random(0)
    text = [rng.randrange(5) for _ in range(100)]
    shape = Shape(1, 3, 50, 10)
    count = LeaderCount(shape, 300)
    for start in range(0, len(text), cut):
        count.add(text[start : start + cut], starts=start == 0)
    assert dict(count.table().entries()) == by_hand([text], shape)


@pytest.mark.parametrize("most", [1, 10, 37, 100])
def test_the_rarest_followers_go_first(most: int) -> None:
    rng = random.Random(2)
    text = [min(int(rng.expovariate(0.3)), 30) for _ in range(3000)]
    whole = by_hand([text], Shape(1, 2, 1000, 1000))
    times = Counter(pairs(text, 1, 2))
    found = counted([text], Shape(1, 2, 1000, 1000, most=most), 100)
    kept = [times[leader, gram] for leader, held in found.items() for gram in held]
    assert (
        sorted(kept, reverse=True)
        == sorted((times[leader, gram] for leader, held in whole.items() for gram in held), reverse=True)[
            :most
        ]
    )
    for leader, held in found.items():
        assert held == whole[leader][: len(held)]


# ---- corpus


def spell(text: str) -> list[int]:
    return [ord(letter) for letter in text]


def read(corpus: Corpus) -> list[str]:
    texts: list[str] = []
    for piece in corpus.pieces(spell):
        said = "".join(map(chr, piece.ids))
        if piece.starts:
            texts.append(said)
        else:
            texts[-1] += said
    return texts


def test_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / ".git").mkdir()
    for name, text in {"b/two.py": "2", "a.txt": "1", "c.md": "3", ".hidden": "x", ".git/y": "y"}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "binary").write_bytes(b"\x00\x01")
    (tmp_path / "latin").write_bytes("é".encode("latin-1"))
    (tmp_path / "link").symlink_to("/etc/hostname")
    corpus = Corpus([tmp_path])
    assert read(corpus) == ["1", "3", "2"]
    assert corpus.passed_over == 2
    assert read(Corpus([tmp_path / "c.md", tmp_path / "a.txt"])) == ["3", "1"]


@pytest.mark.parametrize("characters", [1, 2, 3, 5, 16, 1000])
@pytest.mark.parametrize("text", ["", "a\ntwo\r\nb\rc", "äöü€😀" * 7, "é\n" * 9, "no end" * 20 + "\n"])
def test_pieces_are_the_text(
    tmp_path: Path, text: str, characters: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.tables.build._PIECE_CHARACTERS", characters)
    path = tmp_path / "t"
    path.write_bytes(text.encode())
    corpus = Corpus([path])
    pieces = list(corpus.pieces(spell))
    assert "".join(map(chr, [i for piece in pieces for i in piece.ids])) == text
    assert corpus.read_bytes == corpus.size_bytes == len(text.encode())
    assert [piece.starts for piece in pieces] == [True, *[False] * (len(pieces) - 1)][: len(pieces)]
    for tail in (b"", b"\xff", b"\0"):  # the same text, and none of what is not text
        path.write_bytes(b"\xef\xbb\xbf" + text.encode() + tail)
        corpus = Corpus([path])
        assert (read(corpus), corpus.passed_over) == ([] if tail or not text else [text], bool(tail))


def test_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="does not exist"):
        Corpus([tmp_path / "none"])
    with pytest.raises(RequestError, match="no files"):
        Corpus([tmp_path])
