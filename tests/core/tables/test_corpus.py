"""A corpus is read completely, in order, in pieces; a gram table of texts counts up to its limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import RequestError
from core.tables.gram_count import Corpus, GramCounter, Pruning, TextGrams


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


@pytest.mark.parametrize("piece_bytes", [1, 2, 3, 5, 16, 1000])
@pytest.mark.parametrize("text", ["", "one\ntwo\nthree", "äöü€😀" * 7, "é\n" * 9, "no end" * 20 + "\n"])
def test_pieces_are_the_text(
    tmp_path: Path, text: str, piece_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.tables.gram_count._PIECE_BYTES", piece_bytes)
    path = tmp_path / "t"
    path.write_bytes(text.encode())
    corpus = Corpus([path])
    pieces = list(corpus.pieces(spell))
    assert "".join(map(chr, [i for piece in pieces for i in piece.ids])) == text
    assert corpus.read_bytes == corpus.size_bytes == len(text.encode())
    assert [piece.starts for piece in pieces] == [True, *[False] * (len(pieces) - 1)][: len(pieces)]


def test_going_on_after_some_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.tables.gram_count._PIECE_BYTES", 4)
    for name in "abc":
        (tmp_path / name).write_text(f"{name}1\n{name}2\n{name}3\n")
    (tmp_path / "b2").write_bytes(b"\0")
    pieces = list(Corpus([tmp_path]).pieces(spell))
    for after in range(len(pieces) + 1):
        corpus = Corpus([tmp_path])
        assert list(corpus.pieces(spell, after=after)) == pieces[after:]
        assert (corpus.read_bytes, corpus.passed_over) == (27, 1)


def test_a_changed_file_is_another_corpus(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one")
    before = Corpus([tmp_path]).fingerprint()
    assert Corpus([tmp_path]).fingerprint() == before
    (tmp_path / "a").write_text("two!")
    assert Corpus([tmp_path]).fingerprint() != before


def test_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="does not exist"):
        Corpus([tmp_path / "none"])
    with pytest.raises(RequestError, match="no files"):
        Corpus([tmp_path])


def encode(text: str) -> list[int]:
    return list(text.encode())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("core.tables.gram_count._PIECE_BYTES", 16)
    (tmp_path / "a").write_text("one two three four\n" * 3)
    (tmp_path / "b").write_text("five six\n")
    return tmp_path


def test_all_of_it(folder: Path) -> None:
    grams = TextGrams(Corpus([folder]), encode, most_tokens=1000)
    steps = list(grams.read())
    assert [step.tokens for step in steps] == sorted({step.tokens for step in steps})
    assert (steps[-1].tokens, steps[-1].share) == (66, 1.0)
    assert grams.counted == steps[-1]
    whole = GramCounter()
    for part in ("one two three four\n",) * 3 + ("five six\n",):
        whole.add((), encode(part))
    found, expected = (
        grams.table(Pruning()).lookup(encode(" fou")),
        whole.table(Pruning()).lookup(encode(" fou")),
    )
    assert found[0].followers == expected[0].followers == ((ord("r"), 1.0),)


def test_no_more_than_asked_for(folder: Path) -> None:
    grams = TextGrams(Corpus([folder]), encode, most_tokens=21)
    assert list(grams.read())[-1].tokens == 21
    assert grams.counted.share < 1.0
    assert not grams.table(Pruning()).lookup(encode("v"))[0].order, "nothing of the second file was read"
