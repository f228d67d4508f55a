"""The README's moving picture."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def tour(out: Path, model: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "app.bench.screens", "--tour", str(out), "--model", str(model)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.sweep
@pytest.mark.skipif(
    not (shutil.which("magick") or Path("/usr/bin/convert").exists()), reason="no ImageMagick"
)
def test_a_race_becomes_one_moving_picture(toy_folder: Path, tmp_path: Path) -> None:
    done = tour(tmp_path / "new" / "tour.gif", toy_folder)
    assert done.returncode == 0, done.stderr
    content = (tmp_path / "new" / "tour.gif").read_bytes()
    assert content.startswith(b"GIF89a")
    # One block of control for each frame.
    assert content.count(b"\x21\xf9\x04") >= 3


def test_without_imagemagick_it_says_so(toy_folder: Path, tmp_path: Path) -> None:
    done = tour(tmp_path / "tour.gif", toy_folder, PATH=str(tmp_path))
    assert done.returncode == 1
    assert "ImageMagick is not installed" in done.stderr
    assert not (tmp_path / "tour.gif").exists()
