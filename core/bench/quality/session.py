"""Session: a prompt that was read in some way; both likelihoods and an answer can be asked of it.

Both start from the same state: what is run is taken back afterwards. Only for models whose cache
can go back to any prefix. Owned by the thread that loaded the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import numpy as np

from core.bench.quality.likelihood import log_probabilities
from core.errors import InternalError
from core.kv.cached_sequence import CachedSequence
from core.models.loader import LoadedModel
from core.prefill.scorers.draft_model import Attended, watched


class Session:
    """`sequence` stands for all of `prompt` but its last token."""

    def __init__(self, loaded: LoadedModel, sequence: CachedSequence, prompt: Sequence[int]) -> None:
        self._loaded = loaded
        self._sequence = sequence
        self._prompt = list(prompt)

    @property
    def read_tokens(self) -> int:
        """How much of the prompt the model has read or is about to, its last token included."""
        return self._sequence.columns.count + 1

    def predict(self, tokens: Sequence[int]) -> mx.array:
        """float32 log-probabilities [n, V] for each of `tokens` given the prompt and those before it."""
        block = [self._prompt[-1], *tokens[:-1]]
        found = log_probabilities(self._run(block)[0])
        mx.eval(found)
        self._back()
        return found

    def attended_by(self, tokens: Sequence[int]) -> np.ndarray[Any, Any]:
        """float32, one for each token of the prompt: what its last and `tokens` behind it attend to.

        Scores as in `core.prefill.scorers.draft_model`, over all layers that see the whole prompt.
        """
        block = [self._prompt[-1], *tokens]
        attended = Attended(list(range(len(block))), len(self._prompt) + len(tokens), len(self._prompt))
        with watched(self._loaded.model, attended.add):
            logits = self._run(block)
        found = attended.result
        if found is None:
            raise InternalError("No layer of this model looks at the whole prompt.")
        mx.eval(found, logits)
        self._back()
        return np.array(found)

    def answer(self, max_tokens: int) -> str:
        """The greedy answer, up to a stop token or a line break."""
        decode, stops = self._loaded.tokenizer.decode, self._loaded.eos
        tokens: list[int] = []
        last = self._prompt[-1]
        while len(tokens) < max_tokens:
            last = int(mx.argmax(self._run([last])[0, -1]))
            if last in stops:
                break
            tokens.append(last)
            if "\n" in decode([last]):
                break
        self._back()
        return str(decode(tokens))

    def _run(self, block: Sequence[int]) -> mx.array:
        logits: mx.array = self._loaded.model(mx.array(list(block))[None], cache=self._sequence.cache)
        self._sequence.append(block)
        return logits

    def _back(self) -> None:
        self._sequence.truncate(len(self._prompt) - 1)
