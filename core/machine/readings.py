"""Which way of reading a long text a model answers best from: a trial on a text with known answers.

The text is the beginning of the manual that the first page's example asks about. Each right answer gets its
mean log-likelihood after the whole text, after the columns of the passages that match the question in the
cache of the whole text, and after these passages alone; passages are chosen by words. A way counts as better
if the mean of the paired differences exceeds two of its standard errors; otherwise the model's size decides
(`preference_by_size`). About 2,000 tokens are read once, and for each question a few hundred. Worker's main
thread.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from math import sqrt
from statistics import fmean, stdev

import mlx.core as mx
from msgspec import Struct

from core.decoding.answer import Answer
from core.errors import DraftlightError
from core.events import Attachment, Generate, Message, ModelInfo
from core.kv.cached_sequence import CachedSequence
from core.models.loader import LoadedModel
from core.prefill.plan import Preference, preference_by_size
from core.prefill.reading import Reading
from core.prompt import render
from core.settings import Settings, assign_all
from core.settings.prefill import PrefillMode
from core.system.files import JsonStore
from core.system.paths import resources_dir

# Chapters 1 to 6, about which the questions are.
_MANUAL, _CHARACTERS = resources_dir() / "first-page" / "heat-pump.md", 9_000
_QUESTIONS = (
    ("How many litres does the cylinder for hot water hold?", "210 litres"),
    ("Below which outside temperature does the compressor stop?", "Minus 22 degrees"),
    ("How long does defrosting take?", "Between three and eight minutes"),
    ("Which refrigerant does the heat pump contain?", "Propane"),
    ("What does the symbol of a moon on the display mean?", "The quiet mode is on"),
    ("When does the display go dark?", "After ninety seconds"),
    ("What is the code of the child lock?", "The year of manufacture"),
    ("To how many degrees does the heater bring the cylinder once a week?", "63 degrees"),
    ("How long does “Extra hot water” take?", "About fifty minutes"),
    ("To what is the heating curve set in houses with radiators?", "6"),
    ("By how much is the machine quieter at the neighbour's fence?", "5 decibels"),
    ("What is a rattling that comes and goes with the wind?", "The cover"),
)
# A prompt that fills more of the context than this is not read for a trial.
_MOST_OF_CONTEXT = 0.75
_CERTAIN_ERRORS = 2.0


class ReadingTrial(Struct, frozen=True):
    """Mean log-likelihoods of right answers, in nats a token, one a question.

    `columns` is empty for a model whose columns cannot be selected, and all are if the text did not fit.
    `folder`: the model's.
    """

    key: str
    folder: str = ""
    whole: tuple[float, ...] = ()
    columns: tuple[float, ...] = ()
    passages: tuple[float, ...] = ()

    def preference(self, info: ModelInfo) -> Preference:
        """Whether the model `info` answers better from passages or their columns."""
        by_size = preference_by_size(info.parameters)
        best = self.columns if fmean(self.columns or [-1e9]) > fmean(self.whole or [0.0]) else self.whole
        columns = _is_better(self.columns, self.whole)
        passages = _is_better(self.passages, best)
        if columns is None and passages is None:
            return by_size
        return Preference(
            by_size.passages if passages is None else passages,
            by_size.columns if columns is None else columns,
            f"measured on {len(self.whole)} questions",
        )

    @property
    def summary(self) -> str:
        """The ways and their means, the best first; empty if nothing was tried."""
        ways = (("all of it", self.whole), ("passages’ columns", self.columns), ("passages", self.passages))
        means = sorted(((fmean(values), name) for name, values in ways if values), reverse=True)
        return ", ".join(f"{name} (−{abs(mean):.2f})" for mean, name in means)


def summaries() -> dict[str, str]:
    """The summary of each model that was tried, by its folder."""
    return {each.folder: each.summary for each in TRIALS.all()}


def _is_better(one: Sequence[float], other: Sequence[float]) -> bool | None:
    """Whether the values `one` are greater than their pairs in `other`; None if that is uncertain."""
    if len(one) < 2 or len(one) != len(other):
        return None
    differences = [a - b for a, b in zip(one, other, strict=True)]
    mean, error = fmean(differences), stdev(differences) / sqrt(len(differences))
    return None if abs(mean) <= _CERTAIN_ERRORS * error else mean > 0


def try_readings(loaded: LoadedModel, key: str, *around: str) -> Generator[None, None, ReadingTrial]:
    """Reads one chunk per `next()`. `around`: texts before and after the one in question."""
    folder = loaded.info.path
    text = _MANUAL.read_text("utf-8")[:_CHARACTERS].join(around or ("", ""))
    dense = CachedSequence(loaded.new_cache)
    found: dict[str, list[float]] = {"whole": [], "columns": [], "passages": []}
    for question, right in _QUESTIONS:
        message = Message("user", question, (Attachment("manual", text),))
        try:
            prompt = render(loaded.tokenizer, [message], thinking="off", rows=loaded.info.vocabulary)
        except DraftlightError:  # the template refuses it
            return ReadingTrial(key, folder)
        if len(prompt.ids) > _MOST_OF_CONTEXT * loaded.info.context_tokens:
            return ReadingTrial(key, folder)
        gold = loaded.tokenizer.encode(right, add_special_tokens=False)

        def answered(mode: PrefillMode, sequence: CachedSequence) -> Generator[None, None, float]:
            answer = Answer(Generate("", (message,), _settings(mode)), loaded, prompt)  # noqa: B023
            answer.sequence = sequence
            reading = Reading(answer, preference=Preference(False, True))
            for _ in reading.plan():
                yield
            for _ in reading.events():
                yield
            return _likelihood(loaded, answer, gold)  # noqa: B023

        found["whole"].append((yield from answered("off", dense)))
        if dense.can_select:
            found["columns"].append((yield from answered("auto", dense)))
        found["passages"].append((yield from answered("on", CachedSequence(loaded.new_cache))))
        mx.clear_cache()
    return ReadingTrial(key, folder, *(tuple(found[name]) for name in ("whole", "columns", "passages")))


def _settings(mode: PrefillMode) -> Settings:
    values = {"mode": mode, "scorer": "lexical", "chunk_tokens": 128, "threshold_tokens": 512}
    return assign_all(Settings(), [(f"prefill.{name}", value) for name, value in values.items()])


def _likelihood(loaded: LoadedModel, answer: Answer, gold: Sequence[int]) -> float:
    """Mean log-likelihood of `gold` after the prompt, which is in the cache except for its last token."""
    tokens = [answer.ids[-1], *gold[:-1]]
    logits = loaded.model(mx.array(tokens)[None], cache=answer.sequence.cache)[0].astype(mx.float32)
    answer.sequence.append(tokens)
    chosen = mx.take_along_axis(logits, mx.array(list(gold))[:, None], axis=-1)[:, 0]
    return float((chosen - mx.logsumexp(logits, axis=-1)).mean())


# The version changes with the text, the questions and the reading.
TRIALS = JsonStore("readings-v1", ReadingTrial)
