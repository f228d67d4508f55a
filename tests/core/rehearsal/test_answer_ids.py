"""Answer ids: what went in comes out, small; anything else is refused in words."""

from __future__ import annotations

import lzma
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from msgspec.structs import replace

from core.errors import TableError
from core.models.loader import LoadedModel
from core.rehearsal import streams as module
from core.rehearsal.streams import SUFFIX, Stream, prompt_key, read_records, save_ids, shipped_ids
from core.tables import files as table_file

STREAMS = [Stream([1, 2, 3], [4, 5, 2]), Stream([1, 2], []), Stream([3], [259] * 200)]


@pytest.fixture
def path(tmp_path: Path, toy: LoadedModel) -> Path:
    save_ids(tmp_path / f"toy{SUFFIX}", STREAMS, toy.info)
    return tmp_path / f"toy{SUFFIX}"


@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 100_000), max_size=4), st.lists(st.integers(0, 100_000), max_size=9)
        ),
        max_size=8,
        unique_by=lambda pair: tuple(pair[0]),
    ),
    st.sampled_from([100_001, 1 << 20]),
)
def test_what_goes_in_comes_out(
    tmp_path: Path, toy: LoadedModel, pairs: list[tuple[list[int], list[int]]], vocabulary: int
) -> None:
    info = replace(toy.info, vocabulary=vocabulary)
    written = save_ids(tmp_path / f"a{SUFFIX}", (Stream(prompt, out) for prompt, out in pairs), info)
    found = shipped_ids(info, tmp_path)
    assert found == written
    assert found is not None
    assert found.answers == {prompt_key(prompt): out for prompt, out in pairs}
    assert found.tokens == sum(len(out) for _, out in pairs)


def test_records_as_they_were_always_written_can_be_read(tmp_path: Path, toy: LoadedModel) -> None:
    line = {"prompt": [1, 7], "out": [9, 2], "cls": "howto", "tops": [[9, 3]], "shares": [[0.9, 0.05]]}
    (tmp_path / "r.jsonl").write_bytes(msgspec.json.encode(line) + b"\n")
    found = save_ids(tmp_path / f"a{SUFFIX}", read_records(tmp_path / "r.jsonl"), toy.info)
    assert found.answers == {prompt_key([1, 7]): [9, 2]}


def test_real_answers_take_less_than_a_byte_and_a_half_an_id(tmp_path: Path, toy: LoadedModel) -> None:
    """Words of a text come again; that is what there is to gain."""
    rng = np.random.default_rng(0)
    words = np.minimum(rng.zipf(1.3, 20_000), 40_000).tolist()
    streams = [Stream([number], words[number * 100 : number * 100 + 100]) for number in range(200)]
    save_ids(tmp_path / f"a{SUFFIX}", streams, replace(toy.info, vocabulary=49_152))
    assert (tmp_path / f"a{SUFFIX}").stat().st_size < 1.5 * 20_000


@pytest.mark.parametrize("change", [{"name": "Another"}, {"family": "f" * 64}])
def test_another_model_s_answers_are_skipped(path: Path, toy: LoadedModel, change: dict[str, str]) -> None:
    other = msgspec.convert({**msgspec.to_builtins(toy.info), **change}, type(toy.info))
    assert shipped_ids(other, path.parent) is None


def test_every_damaged_byte_is_noticed(path: Path, toy: LoadedModel) -> None:
    whole = path.read_bytes()
    for at in range(0, len(whole), 7):
        path.write_bytes(bytes([*whole[:at], whole[at] ^ 0x55, *whole[at + 1 :]]))
        with pytest.raises(TableError):
            shipped_ids(toy.info, path.parent)
    for cut in (0, 5, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(TableError):
            shipped_ids(toy.info, path.parent)
    path.write_bytes(whole + b"more")
    with pytest.raises(TableError, match="does not end"):
        shipped_ids(toy.info, path.parent)


def test_a_newer_version_and_lengths_that_lie_are_refused(path: Path, toy: LoadedModel) -> None:
    header, arrays = table_file.decode(lzma.decompress(path.read_bytes()), module._Header, module._FORMAT, 1)
    path.write_bytes(lzma.compress(table_file.encode(replace(header, version=2), arrays)))
    with pytest.raises(TableError, match="has format version 2"):
        shipped_ids(toy.info, path.parent)
    path.write_bytes(lzma.compress(table_file.encode(header, arrays | {"lengths": arrays["lengths"] + 1})))
    with pytest.raises(TableError, match="contains invalid answers"):
        shipped_ids(toy.info, path.parent)
    path.write_bytes(lzma.compress(table_file.encode(replace(header, vocabulary=100), arrays)))
    with pytest.raises(TableError, match="contains invalid answers"):
        shipped_ids(toy.info, path.parent)


def test_a_bomb_is_not_opened(path: Path, toy: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_BYTES", 1 << 20)
    path.write_bytes(lzma.compress(b"\0" * (4 << 20)))
    with pytest.raises(TableError, match="does not end"):
        shipped_ids(toy.info, path.parent)


def test_the_shipped_ones_of_a_model(path: Path, toy: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "shipped_dir", lambda: path.parent)
    found = shipped_ids(toy.info)
    assert found
    assert len(found.answers) == 3
    assert shipped_ids(replace(toy.info, name="Another")) is None
    path.write_bytes(b"nonsense")
    with pytest.raises(TableError, match="Install Draftlight again"):
        shipped_ids(toy.info)


def test_a_place_that_cannot_be_written(tmp_path: Path, toy: LoadedModel) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TableError, match="cannot be written"):
        save_ids(tmp_path / "file" / f"a{SUFFIX}", STREAMS, toy.info)
