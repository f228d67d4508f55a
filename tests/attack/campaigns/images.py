"""Images: drawn chats about them are answered as from cold, and hostile files are refused in words.

A case is a walk through two chats on a tiny model that sees: questions with images of drawn sizes at drawn
places, edits, the same question again, the other chat with an image of the first, an image's file with other
pixels, and a restart that opens the saved chat, each with a drawn drafter, sampling, grammar, document and
chunk. Each answer is compared with that of a cold plain start. Then a file is damaged: cut off, bytes
changed, or another format's beginning before it. It must become an image or a `RequestError` that names it.
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
    {},
    {},
    {"sampling.temperature": 0.5},
    {"sampling.repetition_penalty": 1.1},
    {"sampling.frequency_penalty": 0.5, "sampling.presence_penalty": 0.6},
    {"sampling.no_repeat_ngram_size": 3, "sampling.presence_penalty": -1.0},
)
_SCHEMA = (
    '{"type": "object", "properties": {"kind": {"enum": ["alpha", "beta"]}}, "required": ["kind"],'
    ' "additionalProperties": false}'
)
_ACTS = ("ask", "ask", "ask", "again", "edit", "share", "replace", "restart", "apart")
_MOST_TURNS = 3  # of a chat, for which the context suffices
_SPARSE = {"prefill.mode": "on", "prefill.scorer": "lexical", "prefill.keep_pct": 10}


def _run(seed: int, cases: Sequence[int]) -> Iterator[Outcome]:
    prepare()
    from core.engine.engine import Engine
    from tests.core.seeing import FAMILIES, write_seeing_model, write_seeing_tokenizer
    from tests.core.toy import write_toy_model

    with (
        tempfile.TemporaryDirectory(prefix="draftlight-images-") as scratch,
        variables(DRAFTLIGHT_HOME=str(Path(scratch) / "home")),
    ):
        models: dict[str, Any] = {}
        for case in cases:
            draw = case_random("images", seed, case)
            family, folder = draw.choice(FAMILIES), Path(scratch) / f"case {case}"
            place = Path(scratch) / f"model {FAMILIES.index(family)}"
            if family not in models:
                write_seeing_model(place, family)
                write_toy_model(place / "draft")
                write_seeing_tokenizer(place / "draft", family)
                engine = Engine()
                engine.load(str(place))
                engine.try_out()
                models[family] = engine
            folder.mkdir()
            walk = _Walk(models[family], draw, folder, str(place / "draft"))
            try:
                walk.run()
                fault = _hostile(draw, folder)
            except Exception as error:
                fault = f"{family}: {type(error).__name__}: {error}"
            yield Outcome(case, fault, walk.counts, {}, {"family": family})


class _Walk:
    """Two chats, of which one is open. `cold` answers plainly and starts cold each time."""

    def __init__(self, cold: Any, draw: random.Random, folder: Path, draft_model: str) -> None:
        self._cold, self._draw, self._folder, self._draft_model = cold, draw, folder, draft_model
        self._chats: list[list[Any]] = [[], []]
        self._open = self._images = 0
        self.counts: dict[str, float] = {}
        self._engine = self._started()

    def run(self) -> None:
        """Raises AssertionError where an answer is not the cold one."""
        self._ask()
        for _ in range(self._draw.randint(2, 4)):
            act = self._draw.choice(_ACTS)
            getattr(self, f"_{act}")()
            self._count(act)
        self._engine.unload()

    # ---- acts

    def _ask(self) -> None:
        """A further question of the open chat, which begins anew if it is long."""
        text = "What is in it? " * self._draw.choice((1, 8, 24))
        images = tuple(
            replace(self._image(), at=self._draw.randint(0, len(text)))
            for _ in range(self._draw.choice((0, 1, 1, 2)))
        )
        if sum(turn.role == "user" for turn in self._talk) >= _MOST_TURNS:
            self._chats[self._open] = []
        self._go_on(text, images)

    def _again(self) -> None:
        self._answer()

    def _edit(self) -> None:
        """The words of a question change, or its images do; what followed is gone."""
        at = self._draw.choice([at for at, turn in enumerate(self._talk) if turn.role == "user"])
        question = self._talk[at]
        images = question.images if self._draw.random() < 0.5 else (self._image(),)
        words = question.content[: self._draw.randint(1, 9)]
        self._chats[self._open] = [*self._talk[:at], replace(question, content=words, images=images)]
        self._answer()

    def _share(self) -> None:
        """The other chat asks about an image of this one."""
        known = [image for turn in self._talk for image in turn.images]
        self._open = 1 - self._open
        self._chats[self._open] = self._talk[: 2 * (_MOST_TURNS - 1)]
        self._go_on("And what is this?", tuple(known[-1:]))

    def _replace(self) -> None:
        """The file of an image gets other pixels, and the chats have the image that is in it now."""
        from core.documents.client import ImageReading

        known = [image for turn in self._talk for image in turn.images]
        if known:
            path = Path(self._draw.choice(known).path)
            path.write_bytes(Path(self._image().path).read_bytes())
            now = replace(ImageReading(path).describe(), path=str(path))
            for number, talk in enumerate(self._chats):
                self._chats[number] = [_with_image(turn, now) for turn in talk]
        self._answer()

    def _restart(self) -> None:
        self._engine.unload()  # which saves the chat
        self._engine = self._started()
        self._go_on("And now?", ()) if len(self._talk) < 2 * _MOST_TURNS - 1 else self._answer()

    def _apart(self) -> None:
        """A question about a document beside the images, of which passages are skipped."""
        from core.events import Attachment

        text = "".join(f"The number of box {n} is {n * 7919 % 1000}. " for n in range(30))
        *before, question = self._talk
        talk = [*before, replace(question, attachments=(Attachment("a.txt", text),))]
        stats = self._compared(talk, self._settings(_SPARSE), isolated=True)
        self._count("skipped tokens", stats.skipped_tokens)

    # ---- inside

    @property
    def _talk(self) -> list[Any]:
        return self._chats[self._open]

    def _go_on(self, text: str, images: tuple[Any, ...]) -> None:
        from core.events import Message

        line = [Message("assistant", "A line.")] if self._talk else []
        self._chats[self._open] = [*self._talk, *line, Message("user", text, images=images)]
        self._answer()

    def _answer(self) -> None:
        from core.events import Grammar

        also: dict[str, Any] = {}
        if self._draw.random() < 0.15:
            also["grammar"] = Grammar("json_schema", _SCHEMA)
        stats = self._compared(self._talk, self._settings({}), chat=f"chat {self._open}", **also)
        self._count("tokens from disk", stats.disk_tokens)
        self._count("reused tokens", stats.reused_tokens)

    def _compared(self, talk: Sequence[Any], settings: Any, **more: Any) -> Any:
        """Statistics of the answer. Raises AssertionError if it is not that of a cold plain start."""
        from core.settings import assign_all

        have, finished = _answer(self._engine, talk, settings, **more)
        more |= {"isolated": True}
        if "grammar" in more:
            more["grammar"] = replace(more["grammar"], drafts=False)
        plain = assign_all(settings, [("drafting.drafter", "off")])
        expected, _ = _answer(self._cold, talk, plain, **more)
        assert have == expected, f"{settings.drafting.drafter}: {have} instead of {expected}"
        self._count("accepted tokens", finished.stats.accepted)
        self._count("rows", finished.stats.image_tokens)
        return finished.stats

    def _settings(self, more: dict[str, Any]) -> Any:
        from core.settings import Settings, assign_all
        from tests.core.engine.support import DRAFTING

        draw = self._draw
        values: dict[str, object] = {
            "drafting.drafter": draw.choice(DRAFTING),
            "draft_model.model": self._draft_model,
            "gate.mode": "always",
            "sampling.max_tokens": draw.randint(4, 24),
            "sampling.temperature": 0.0,
            "ngram_simple.n_min": 1,
            "ngram_mod.n": 4,
            "ngram_mod.slots": 4096,
            **draw.choice(_SAMPLINGS),
            "prefill.chunk_tokens": draw.choice((32, 64, 512)),
            "prefill.save": True,
            **more,
        }
        return assign_all(Settings(), values.items())

    def _image(self) -> Any:
        from tests.core.seeing import image

        self._images += 1
        folder = self._folder / str(self._images)  # equal pixels have several paths
        folder.mkdir()
        return image(folder, self._draw.randrange(6), *self._draw.choice(_SIZES))

    def _started(self) -> Any:
        from core.engine.engine import Engine
        from core.kv.saved_files import SavedFiles

        engine = Engine(saved_files=SavedFiles(self._folder / "saved"))
        engine.use(self._cold.loaded)
        return engine

    def _count(self, name: str, by: float = 1.0) -> None:
        self.counts[name] = self.counts.get(name, 0.0) + by


def _with_image(turn: Any, now: Any) -> Any:
    """`turn` with `now` in place of images of the same path."""
    images = (replace(now, at=each.at) if each.path == now.path else each for each in turn.images)
    return replace(turn, images=tuple(images))


def _answer(engine: Any, talk: Sequence[Any], settings: Any, **more: Any) -> tuple[list[int], Any]:
    from core.events import Generate, Token

    engine.loaded.eos = frozenset({0}) if "grammar" in more else frozenset()
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
