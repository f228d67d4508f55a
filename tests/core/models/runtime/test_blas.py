"""OpenBLAS: one that was built for another processor is found out before it ends the process."""

from __future__ import annotations

import pytest

from core.models.runtime.blas import missing_instructions

OLDER = frozenset({"sse2", "avx", "avx2", "fma"})
NEWER = OLDER | {"avx512f", "avx512bw"}


@pytest.mark.parametrize(
    ("built_for", "flags", "lacking"),
    [
        ("ZEN", OLDER, ""),
        ("Haswell", OLDER, ""),
        ("SKYLAKEX", NEWER, ""),
        ("SKYLAKEX", OLDER, "avx512f"),
        ("SapphireRapids", OLDER, "avx512f"),
        ("ZEN", frozenset({"sse2"}), "avx2"),
    ],
)
def test_a_library_is_used_where_its_instructions_exist(
    built_for: str, flags: frozenset[str], lacking: str
) -> None:
    assert missing_instructions(built_for, flags) == lacking
