"""The smoke test itself: that it passes with a real model, and that it can fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FAKE = "from tests.app.stage import FAKE\n"


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}"],
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, **environment},
    )


def kept() -> set[Path]:
    """All that is kept but models, and locks, which hold nothing."""
    home = Path(os.environ["DRAFTLIGHT_HOME"])
    files = {path.relative_to(home) for path in (home / "data").rglob("*") if path.is_file()}
    return {path for path in files if path.parts[1] != "models" and path.suffix != ".lock"}


@pytest.mark.sweep
def test_with_the_starter_model() -> None:
    before = kept()
    done = run("from app.launch.scenario import run_smoke\nsys.exit(run_smoke())")
    assert done.returncode == 0, done.stderr
    assert kept() == before, "no chat, no preferences, no table"
    (line,) = done.stdout.splitlines()
    record = json.loads(line)
    stats = record["stats"]
    assert record["ok"] is True
    # It passes however often it has run: nothing is remembered from one time to the next.
    assert record["drafter"] == "ngram-simple"
    assert record["stats"]["table"] is None
    assert stats["tokens"] == stats["accepted"] + stats["bonus"] + stats["normal"]
    assert min(stats["accepted"], stats["bonus"], stats["normal"]) > 0
    assert stats["tokens_per_s"] > 0


@pytest.mark.sweep
def test_what_fails_it_is_said() -> None:
    code = "import os\nfrom app.launch.scenario import run_smoke\n"
    code += "print(run_smoke(command=FAKE), run_smoke(command=FAKE, timeout_s=0.0), flush=True)\n"
    code += "os.environ['FAKE_LOAD'] = 'die'\nprint(run_smoke(command=FAKE))"
    done = run(FAKE + code)
    assert (done.returncode, done.stdout.split()) == (0, ["1", "1", "1"])
    # The fake worker answers a question without orders with one normal token.
    for said in ("accepted, bonus", "was not ready within", "SIGKILL"):
        assert said in done.stderr


def test_a_picture_that_cannot_be_taken_is_a_failure(tmp_path: Path) -> None:
    out = tmp_path / "picture.png"
    code = f"{FAKE}from app.launch.scenario import run_screenshot\n"
    done = run(f"{code}sys.exit(run_screenshot({str(out)!r}, 'dark', command=FAKE))")
    assert done.returncode == 1
    assert done.stderr.startswith("draftlight: ") or "\ndraftlight: " in done.stderr
    assert not out.exists()


@pytest.mark.slow
def test_a_picture_of_the_starter_model(tmp_path: Path) -> None:
    out = tmp_path / "picture.png"
    done = run(
        f"from app.launch.scenario import run_screenshot\nsys.exit(run_screenshot({str(out)!r}, 'light'))"
    )
    assert done.returncode == 0, done.stderr
    assert out.read_bytes().startswith(b"\x89PNG")


def test_the_document_of_the_picture_is_several_hundred_words() -> None:
    from app.launch.scenario import document

    assert 400 < len(document().split()) < 1500
