"""Images: drawn chats about them are answered as from cold, and hostile files are refused in words.

A case is a chat on a tiny model that sees: turns with images of drawn sizes at drawn places, edits, the same
image again or another one, with a drawn drafter, sampling and chunk. Each answer is compared with that of a
cold plain start. Then a file is damaged: cut off, bytes changed, or another format's beginning before it. It
must become an image or a `RequestError` that names it.
"""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from core.models.runtime import prepare
from tests.attack.campaign import Campaign, Outcome, case_random
from tests.attack.support.variables import variables

_SIZES = ((1, 1), (3, 2), (40, 24), (64, 32), (17, 90), (1, 150), (200, 7), (33, 33))
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "TIFF", "BMP", "AVIF")
_HEADS = (b"", b"GIF89a", b"\x89PNG\r\n\x1a\n", b"RIFF\0\0\0\0WEBP", b"II*\0", b"<svg", b"\0\0\0\x18ftypheic")
_INTERNALS = re.compile(r"Traceback|\bNone\b|0x[0-9a-f]{6}")
_SAMPLINGS: tuple[dict[str, object], ...] = (
    {"sampling.temperature": 0.0},
    {"sampling.temperature": 0.5},
    {"sampling.temperature": 0.0, "sampling.repetition_penalty": 1.1},
    {"sampling.temperature": 0.0, "sampling.presence_penalty": 0.6},
)


def _run(seed: int, cases: Sequence[int]) -> Iterator[Outcome]:
    prepare()
    from core.engine.engine import Engine
    from tests.core.seeing import FAMILIES, write_seeing_model

    with (
        tempfile.TemporaryDirectory(prefix="draftlight-images-") as scratch,
        variables(DRAFTLIGHT_HOME=str(Path(scratch) / "home")),
    ):
        engines: dict[str, Any] = {}
        for case in cases:
            draw = case_random("images", seed, case)
            family = draw.choice(FAMILIES)
            if family not in engines:
                folder = Path(scratch) / f"model {len(engines)}"
                write_seeing_model(folder, family)
                engines[family] = Engine()
                engines[family].load(str(folder))
                engines[family].loaded.eos = frozenset()
                engines[family].try_out()
            try:
                counts = _chat(engines[family], draw, Path(scratch))
                fault = _hostile(draw, Path(scratch))
            except AssertionError as error:
                fault, counts = f"{family}: {error}", {}
            yield Outcome(case, fault, counts, {}, {"family": family})


def _chat(engine: Any, draw: random.Random, folder: Path) -> dict[str, float]:
    from core.events import Message
    from core.settings import Settings, assign_all
    from tests.core.engine.support import DRAFTING
    from tests.core.seeing import image

    drafter = draw.choice([name for name in DRAFTING if name != "draft-model"])
    values: dict[str, object] = {
        "drafting.drafter": drafter,
        "gate.mode": "always",
        "sampling.max_tokens": draw.randint(4, 24),
        "ngram_simple.n_min": 1,
        "ngram_mod.n": 4,
        "ngram_mod.slots": 4096,
        **draw.choice(_SAMPLINGS),
        "prefill.chunk_tokens": draw.choice((32, 64, 512)),
    }
    settings = assign_all(Settings(), values.items())
    talk: list[Message] = []
    accepted = rows = 0.0
    for turn in range(draw.randint(1, 3)):
        text = "What is in it? " * draw.randint(1, 8)
        drawn = (image(folder, draw.randrange(6), *draw.choice(_SIZES)) for _ in range(draw.randint(0, 2)))
        images = tuple(replace(each, at=draw.randint(0, len(text))) for each in drawn)
        if talk and draw.random() < 0.3:  # an earlier question is edited, or its images are
            talk = [replace(talk[0], content=talk[0].content[: draw.randint(1, 9)], images=images)]
        else:
            talk += [Message("assistant", "A line.")] if talk else []
            talk.append(Message("user", text, images=images))
        have, finished = _answer(engine, talk, settings)
        expected, _ = _answer(
            engine, talk, assign_all(settings, [("drafting.drafter", "off")]), isolated=True
        )
        assert have == expected, f"{drafter}, turn {turn}: {have} instead of {expected}"
        accepted += finished.stats.accepted
        rows += finished.stats.image_tokens
    return {"accepted tokens": accepted, "rows": rows}


def _answer(engine: Any, talk: Sequence[Any], settings: Any, **more: Any) -> tuple[list[int], Any]:
    from core.events import Generate, Token

    *events, finished = engine.generate(Generate("", tuple(talk), settings, **more))
    return [event.id for event in events if isinstance(event, Token)], finished


def _hostile(draw: random.Random, folder: Path) -> str:
    """What is wrong with how a damaged file was read; empty if nothing is."""
    from PIL import Image as Pillow

    from core.documents.client import ImageReading
    from core.errors import RequestError

    path = folder / f"hostile.{draw.choice(_FORMATS).lower()}"
    Pillow.frombytes("RGB", (37, 23), draw.randbytes(37 * 23 * 3)).save(path, draw.choice(_FORMATS))
    data = bytearray(path.read_bytes())
    for _ in range(draw.randint(0, 12)):
        data[draw.randrange(len(data))] = draw.randrange(256)
    if draw.random() < 0.5:
        del data[draw.randrange(len(data)) :]
    path.write_bytes(draw.choice(_HEADS) + data)
    try:
        found = ImageReading(path).describe()
        ImageReading(path).scaled(found.hash, 8, 8, "bicubic")
    except RequestError as error:
        told = str(error)
        return f"it was refused with “{told}”" if path.name not in told or _INTERNALS.search(told) else ""
    return ""


CAMPAIGN = Campaign(
    "images",
    "Answers about images are those of a cold plain start; damaged images are refused in words",
    2,
    200,
    _run,
)
