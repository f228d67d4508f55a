"""OpenBLAS: one that was built for another processor is found out before it ends the process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from core.models.blas import missing_instructions

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


@pytest.mark.skipif(sys.platform != "linux", reason="macOS has Accelerate")
def test_it_is_loaded_where_no_folder_can_be_written_to() -> None:
    """A read-only home: the copy of libgfortran needs no file."""
    code = "from core.models.blas import load_openblas; print(load_openblas())"
    environment = {**os.environ, "DRAFTLIGHT_HOME": "/proc/nowhere", "TMPDIR": "/proc/nowhere"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("OpenBLAS")
