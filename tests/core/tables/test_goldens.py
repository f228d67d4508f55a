"""A learned table is written as in the golden file, and a file that was written then is read.

The order of the two metadata strings, and with it the checksum, differs between processes.
"""

from __future__ import annotations

import json
import struct

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
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    header["__metadata__"].pop("sha256")
    golden.compare("files", {"table": [json.dumps(header, sort_keys=True), content[8 + length :].hex()]})


def test_a_table_of_the_golden_file_is_read() -> None:
    table = NgramTable(16, 2**12)
    fill(table, 40)
    content = encode_table(saved(table))
    lines = [content[at : at + _BYTES_A_LINE].hex() for at in range(0, len(content), _BYTES_A_LINE)]
    if golden.writes():
        golden.compare("files", {"table file": lines})
    stored = decode_table(bytes.fromhex("".join(golden.read("files")["table file"])))
    assert stored.entries.tokens.tolist() == table.entries().tokens.tolist()
