"""A learned table is written to the bytes of the golden file, and read from them."""

from __future__ import annotations

from core.drafting.ngram_mod import NgramTable
from core.tables.files import decode_table, encode_table
from tests.core import golden
from tests.core.tables.support import fill
from tests.core.tables.test_table_file import saved

_BYTES_A_LINE = 50


def test_a_saved_table_is_that_of_the_golden_file() -> None:
    table = NgramTable(16, 2**12)
    fill(table, 40)
    content = encode_table(saved(table))
    lines = [content[at : at + _BYTES_A_LINE].hex() for at in range(0, len(content), _BYTES_A_LINE)]
    golden.compare("files", {"table": lines})
    stored = decode_table(bytes.fromhex("".join(golden.read("files")["table"])))
    assert stored.entries.tokens.tolist() == table.entries().tokens.tolist()
