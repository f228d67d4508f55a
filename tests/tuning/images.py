"""Time and memory of images: reading one of about 1,000 rows, and the first token of a follow-up.

    python -m tests.tuning images --out DIR

Without `--model` it is a synthetic Qwen3.5 of the starter model's size. The result is a table for
docs/benchmarks.md. Each round starts cold: a question about a new image, whose decoding, tower and reading
are timed apart, and a second question that reuses its rows. Beside them a text of as many tokens is read, so
that the rows' own price is seen.
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
    from tests.core.seeing import starter_size, write_seeing_model

    engine = Engine()
    rounds: list[dict[str, Any]] = []
    with TemporaryDirectory() as folder:
        if not options.model:
            write_seeing_model(Path(folder) / "synthetic", sized=starter_size())
        engine.load(options.model or str(Path(folder) / "synthetic"))
        before = memory.used_bytes()
        for number in range(options.pairs):
            rounds.append(_round(engine, Path(folder), number, options.side))
    figures = {key: median(each[key] for each in rounds) for key in rounds[0]}
    figures |= {"model": engine.loaded.info.name, "rounds": options.pairs}
    figures["memory_bytes"] = memory.used_bytes() - before
    figures["eyes_bytes"] = engine._session.eyes_bytes
    text = json.dumps(figures, indent=1)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "images.json").write_text(text + "\n", encoding="utf-8")
    print(_table(figures))
    engine.close()
    return 0


def _table(figures: dict[str, Any]) -> str:
    """The figures in Markdown."""
    rows = {
        f"image of {figures['image_rows']:,.0f} rows: decoding and tower": f"{figures['image_s']:.2f} s",
        "first token about a new image": f"{figures['ttft_s']:.2f} s",
        "first token of a follow-up": f"{figures['followup_ttft_s']:.2f} s",
        f"first token after {figures['text_tokens']:,.0f} tokens of text": f"{figures['text_ttft_s']:.2f} s",
        "memory of tower and rows": f"{figures['eyes_bytes'] / 2**20:,.0f} MiB",
        "memory more than after loading": f"{figures['memory_bytes'] / 2**20:,.0f} MiB",
    }
    return "\n".join(
        ["| what | median |", "|---|---:|", *(f"| {key} | {each} |" for key, each in rows.items())]
    )


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
    tokenizer, rows = engine.loaded.tokenizer, one.stats.image_tokens
    words = tokenizer.decode(tokenizer.encode("one " * rows, add_special_tokens=False)[:rows])
    text = _finished(engine, Generate("", (Message("user", words),), settings))
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
