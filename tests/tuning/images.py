"""Time and memory of images: reading one of about 1,000 rows, and the first token of a follow-up.

    python -m tests.tuning images --model MODEL_THAT_SEES --out DIR

Each round starts cold: a question about a new image, whose decoding, tower and reading are timed apart, and a
second question that reuses its rows. Beside them a text of as many tokens is read, so that the rows' own
price is seen.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from core.events import Finished, Generate, Message
from core.settings import Settings, assign_all


def run(options: argparse.Namespace) -> int:
    """Writes images.json to `--out`, and prints it. Raises `DraftlightError` kinds."""
    from core.models.runtime import prepare

    prepare()
    from core.engine.engine import Engine
    from core.models import memory

    engine = Engine()
    engine.load(options.model)
    before = memory.used_bytes()
    rounds: list[dict[str, Any]] = []
    with TemporaryDirectory() as folder:
        for number in range(options.pairs):
            rounds.append(_round(engine, Path(folder), number, options.side))
    figures = {key: median(each[key] for each in rounds) for key in rounds[0]}
    figures |= {"model": engine.loaded.info.name, "rounds": options.pairs}
    figures["memory_bytes"] = memory.used_bytes() - before
    figures["eyes_bytes"] = engine._session.eyes_bytes
    text = json.dumps(figures, indent=1)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "images.json").write_text(text + "\n", encoding="utf-8")
    print(text)
    engine.close()
    return 0


def _round(engine: Any, folder: Path, number: int, side: int) -> dict[str, float]:
    from PIL import Image as Pillow

    from core.documents.client import ImageReading

    path = folder / f"{number}.png"
    # Noise in squares of 16 pixels.
    squares = Pillow.frombytes("RGB", (side // 16, side // 16), os.urandom(3 * (side // 16) ** 2))
    squares.resize((side, side), Pillow.Resampling.NEAREST).save(path)
    found = ImageReading(path).describe()
    settings = assign_all(Settings(), [("sampling.max_tokens", 16), ("sampling.temperature", 0.0)])
    first = Message("user", "What does it show?", images=(found,))
    talk = (first, Message("assistant", "Squares."), Message("user", "Of which colours?"))
    engine.forget()
    one, two = (_finished(engine, Generate("", each, settings)) for each in ((first,), talk))
    engine.forget()
    words = Message("user", "one " * one.stats.image_tokens)
    text = _finished(engine, Generate("", (words,), settings))
    return {
        "image_rows": one.stats.image_tokens,
        "image_s": one.stats.image_s,
        "ttft_s": one.stats.ttft_s,
        "followup_ttft_s": two.stats.ttft_s,
        "followup_reused_tokens": two.stats.reused_tokens,
        "text_ttft_s": text.stats.ttft_s,
        "text_tokens": text.stats.prompt_tokens,
    }


def _finished(engine: Any, request: Generate) -> Finished:
    *_, finished = engine.generate(request)
    assert isinstance(finished, Finished)
    return finished
