"""Reading ahead under everything that a person does meanwhile.

A case is a walk: documents, and images for models that see, are attached and removed, text is typed,
questions are sent, stopped and edited, other chats are opened, the model is switched, and the worker is quit
or killed and started again, with pieces of idle work in between. After each question the answer must be that
of an engine that has just started and reads the same: all of it, or, where passages are chosen, after as many
tokens as were in the cache. No piece of idle work may run more than one chunk through the model, because a
request waits for it. Of a chat without a question nothing may stay on disk once its message is empty.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from core.events import Attachment, Finished, Generate, Image, Message, Token
from core.kv.saved_files import SavedFiles
from core.settings import Settings, assign_all
from tests.attack.campaign import Campaign, Outcome, case_random

if TYPE_CHECKING:
    from core.engine.engine import Engine
    from core.models.loader import LoadedModel

KINDS = ("llama", "gemma3_text", "qwen3_5")
# Families that see: one whose images passes may divide, and one whose images they may not.
SEEING = ("qwen3_5", "gemma4 both ways")
_STEPS = 14
_CHUNK_TOKENS = 64
# More would not fit the context with the turns of a chat.
_MOST_DOCUMENTS = 3
_MOST_IMAGES = 4
_TEXTS = tuple(" ".join(f"Line {n} of {name} says {n * step % 13}." for n in range(14)) for name, step in
               (("the log", 7), ("a list", 5), ("the plan", 11)))  # fmt: skip
_QUESTIONS = (
    *("What says line 7?", "What does the plan say in line 3?", "9 lines?", "\nAnd (then)", " 你好", "…"),
    _TEXTS[0][:150],
)
_ACTS = (
    *("attach", "attach", "attach", "type", "type", "remove"),
    *("send", "send", "send", "stop", "edit", "leave"),
)
_ACTS_OF_IMAGES = ("show", "show", "show", "hide")
_RARE_ACTS = ("switch", "quit", "quit", "kill")


def settings(*, whole: bool) -> Settings:
    """Greedy, and read ahead: everything is read, or passages of what was not read ahead are chosen."""
    values: dict[str, object] = {
        "prefill.mode": "off" if whole else "auto",
        "prefill.threshold_tokens": 256,
        "prefill.patience_s": 0,
        "prefill.scorer": "lexical",
        "prefill.passages": "fixed",
        "prefill.chunk_tokens": _CHUNK_TOKENS,
        "prefill.read_ahead": "on",
        "drafting.drafter": "off",
        "sampling.temperature": 0.0,
        "sampling.max_tokens": 8,
        "tables.learn": False,
    }
    return assign_all(Settings(), values.items())


class Walk:
    """`models` are of different kinds; `cold` are engines with each, for comparison. `pictures`: the images
    of models that see.
    """

    def __init__(
        self,
        rng: random.Random,
        models: Sequence[LoadedModel],
        cold: Sequence[Engine],
        folder: Path,
        *,
        whole: bool,
        pictures: Sequence[Image] = (),
    ) -> None:
        self._rng = rng
        self._models = models
        self._cold = cold
        self._files = SavedFiles(folder)
        self._settings = settings(whole=whole)
        self._whole = whole
        self._pictures = pictures
        self._model = rng.randrange(len(models))
        self._seconds = 0.0
        self._chats = 0
        self._turns: list[Message] = []
        self._new_chat()
        self._start()
        self.readings: dict[str, float] = {}

    def run(self, steps: int = _STEPS) -> str:
        """Returns what went wrong; empty if nothing did."""
        for _ in range(steps):
            acts = (*_ACTS, *_ACTS_OF_IMAGES) if self._sees else _ACTS
            act = self._rng.choice(_RARE_ACTS if self._rng.random() < 0.15 else acts)
            fault = getattr(self, f"_{act}")() or self._idle(self._rng.choice((0, 3, 9, 40, 40)))
            if fault:
                return f"{act}: {fault}"
        self._draft = Message("user", "")
        is_new = not self._turns
        fault = self._idle(100)
        self._engine.unload()
        left = self._files.path(self._chat, self._models[self._model].info.path).is_file()
        return fault or ("a chat without a word is on disk" if is_new and left else "")

    # ---- acts; each returns a fault

    def _attach(self) -> str:
        document = Attachment(f"{len(self._draft.attachments)}.txt", self._rng.choice(_TEXTS))
        if sum(len(each.attachments) for each in (*self._turns, self._draft)) < _MOST_DOCUMENTS:
            self._draft = replace(self._draft, attachments=(*self._draft.attachments, document))
        return ""

    def _remove(self) -> str:
        held = [*self._draft.attachments]
        if held:
            held.pop(self._rng.randrange(len(held)))
        self._draft = replace(self._draft, attachments=tuple(held))
        return ""

    def _show(self) -> str:
        if sum(len(each.images) for each in (*self._turns, self._draft)) < _MOST_IMAGES:
            images = (*self._draft.images, self._rng.choice(self._pictures))
            self._draft = replace(self._draft, images=images)
        return ""

    def _hide(self) -> str:
        held = [*self._draft.images]
        if held:
            held.pop(self._rng.randrange(len(held)))
        self._draft = replace(self._draft, images=tuple(held))
        return ""

    def _type(self) -> str:
        self._draft = replace(self._draft, content=self._rng.choice(_QUESTIONS))
        return ""

    def _edit(self) -> str:
        """The last question is asked again in other words, with its documents."""
        if self._turns:
            *self._turns, question, _ = self._turns
            self._draft = replace(question, content=self._rng.choice(_QUESTIONS))
            return self._send()
        return ""

    def _leave(self) -> str:
        self._engine.saved_chats.open(self._chat, self._settings.prefill)
        self._new_chat()
        self._engine.saved_chats.open(self._chat, self._settings.prefill)
        return ""

    def _stop(self) -> str:
        for _ in zip(range(self._rng.randint(1, 8)), self._engine.generate(self._asked())):
            pass
        return ""

    def _switch(self) -> str:
        self._model = self._rng.randrange(len(self._models))
        self._engine.use(self._models[self._model])
        return ""

    def _quit(self) -> str:
        self._engine.unload()
        return self._start()

    def _kill(self) -> str:
        return self._start()

    def _send(self) -> str:
        if not self._turns and not self._draft.attachments:
            self._attach()
        asked = self._asked()
        text, ids, finished = answer_of(self._engine, asked)
        effective, stats = finished.effective, finished.stats
        if "earlier ones were skipped" in effective.reading_reason:  # a cold start would lack these gaps
            self._new_chat()
            return ""
        self._count(effective.reading)
        if stats.image_tokens:
            self._count("rows of images", stats.image_tokens)
        _, wanted, cold = answer_of(self._primed(asked, stats.reused_tokens), replace(asked, chat=""))
        if effective.reading != cold.effective.reading:
            return f"read as {effective.reading}, and cold as {cold.effective.reading}"
        if ids != wanted:
            return f"after {stats.reused_tokens:,} tokens in the cache {ids}, and cold {wanted}"
        self._turns += [asked.messages[-1], Message("assistant", text or "-")]
        self._draft = Message("user", "")
        if len(self._turns) > 4:  # the context is short
            self._new_chat()
        return ""

    # ---- inside

    def _start(self) -> str:
        from core.engine.engine import Engine

        self._engine = Engine(clock=lambda: self._seconds, saved_files=self._files)
        self._engine.use(self._models[self._model])
        return ""

    @property
    def _sees(self) -> bool:
        return self._models[self._model].info.sees

    def _count(self, name: str, by: float = 1.0) -> None:
        self.readings[name] = self.readings.get(name, 0.0) + by

    def _new_chat(self) -> None:
        self._chats += 1
        self._chat, self._turns, self._draft = f"chat {self._chats}", [], Message("user", "")

    def _asked(self) -> Generate:
        shown = self._shown()
        draft = shown if shown.content.strip() else replace(shown, content="Why?")
        return Generate("", (*self._turns, draft), self._settings, chat=self._chat)

    def _shown(self) -> Message:
        """The draft, without images for a model that does not see."""
        return self._draft if self._sees else replace(self._draft, images=())

    def _primed(self, asked: Generate, reused_tokens: int) -> Engine:
        """An engine without a cache, or, where passages are chosen, one that has read so many tokens."""
        from core.prefill.read import read_prompt

        engine, model = self._cold[self._model], self._models[self._model]
        engine.forget()
        if not self._whole and reused_tokens:
            prompt = engine._prompt(asked)[0].ids[: reused_tokens + 1]
            sequence = engine._session.prefix_cache.take(prompt)
            sight = engine._sight(asked.messages, prompt)
            for _ in read_prompt(model.model, sequence, prompt, chunk_tokens=_CHUNK_TOKENS, sight=sight):
                pass
        return engine

    def _idle(self, pieces: int) -> str:
        """So many pieces of idle work on what would be asked now; 40 s pass."""
        engine, widths = self._engine, _Counted.widths
        engine.read_ahead(Generate("", (*self._turns, self._shown()), self._settings, chat=self._chat))
        self._seconds += 40.0
        for _ in range(pieces):
            del widths[:]
            if not (engine.saved_chats.piece() or engine._ahead.piece(engine._session, engine._guard)):
                break
            # The first look at a model's cache needs two tokens.
            if sum(widths) > _CHUNK_TOKENS + 2:
                return f"one piece of idle work read {widths} tokens"
        return ""


class _Counted:
    """Base of models that note how many tokens each forward pass has."""

    widths: list[int] = []  # noqa: RUF012 - of all models

    def __call__(self, inputs: Any, *rest: Any, **named: Any) -> Any:
        self.widths.append(inputs.size)
        return super().__call__(inputs, *rest, **named)  # type: ignore[misc]


def answer_of(engine: Engine, asked: Generate) -> tuple[str, list[int], Finished]:
    """Text, ids and end of the answer."""
    *events, finished = engine.generate(asked)
    assert isinstance(finished, Finished)
    tokens = [event for event in events if isinstance(event, Token)]
    return "".join(token.text for token in tokens), [token.id for token in tokens], finished


def models_in(
    folder: Path, kinds: Sequence[str] = KINDS, seeing: Sequence[str] = ()
) -> tuple[list[LoadedModel], list[Engine]]:
    """Tiny models with folders below `folder`, and an engine with each. `seeing`: families of further ones,
    which see.
    """
    from core.engine.engine import Engine
    from core.models.loader import load
    from tests.core.engine.test_saved_chats import long_model
    from tests.core.engine.test_second_turn import TEMPLATES, tokenizer_of
    from tests.core.seeing import write_seeing_model
    from tests.core.toy import write_toy_model

    models, engines = [], []
    for number, kind in enumerate(kinds):
        path = folder / kind
        write_toy_model(path, seed=number)
        models.append(long_model(kind, tokenizer_of(TEMPLATES["dropped"], path), path))
    for family in seeing:
        path = folder / f"{family} that sees"
        write_seeing_model(path, family)
        models.append(load(str(path)))
        models[-1].eos = frozenset()
    for loaded in models:
        model: Any = loaded.model
        model.__class__ = type(
            type(model).__name__, (_Counted, type(model)), {"__module__": type(model).__module__}
        )
        engines.append(Engine())
        engines[-1].use(loaded)
    return models, engines


def _run(seed: int, cases: Sequence[int]) -> Iterator[Outcome]:
    from core.models.runtime import prepare

    prepare()
    from tests.core.seeing import image

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        models, cold = models_in(folder, seeing=SEEING)
        pictures = [
            image(folder, number, *size) for number, size in enumerate(((40, 24), (64, 32), (17, 90)))
        ]
        for case in cases:
            rng = case_random("reading-ahead", seed, case)
            first = len(KINDS) if case % 4 < 2 else 0  # half of the walks are between models that see
            place, whole = folder / f"contexts-{case}", case % 2 == 0
            walk = Walk(rng, models[first:], cold[first:], place, whole=whole, pictures=pictures)
            try:
                fault = walk.run()
            except Exception as error:
                fault = f"{type(error).__name__}: {error}"
            yield Outcome(case, fault, walk.readings)


CAMPAIGN = Campaign(
    "reading-ahead",
    "Whatever is attached, shown, removed, typed, sent, stopped, edited, switched or started again while the"
    " beginning of a question is read, answers are those of a cold start that reads the same, and a request"
    " waits for one chunk",
    6,
    1_000,
    _run,
)
