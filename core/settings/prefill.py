"""Settings of prefill: how the prompt is read, all of it or the parts that matter."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from msgspec import Struct

from core.settings.fields import about, choice, number

PrefillMode = Literal["auto", "off", "on"]
ReadOnChoice = Literal["quote", "off"]
ReadAheadChoice = Literal["auto", "on", "off"]
PassagesChoice = Literal["sentences", "fixed"]
ScorerChoice = Literal["auto", "lexical", "fusion", "draft-model"]
# The scorers, the cheapest first; the registry has one entry for each.
SCORERS: tuple[str, ...] = tuple(name for name in get_args(ScorerChoice) if name != "auto")

# The end of a prompt is always read: this much of it, or, after attachments, the question and the tokens
# before it. Right answers are as likely with 128 tokens as with 512 (resources/notes/prefill.md).
TAIL_TOKENS, DOCUMENT_TAIL_TOKENS = 512, 128
# The length of passages where a text is cut at fixed lengths, and of prompts given as token IDs (the
# SpecPrefill paper).
PASSAGE_TOKENS = 32


class Prefill(Struct, frozen=True, forbid_unknown_fields=True):
    """How the prompt is read. Sparse prefill scores passages, keeps the best and reads only those."""

    mode: Annotated[
        PrefillMode,
        choice(
            {
                "auto": ("Automatic", "Skips passages of long texts, unless the question needs every word."),
                "off": ("Whole", "Reads every word."),
                "on": ("Quick", "Skips passages in every text, however short."),
            }
        ),
        about("Reading", "How much of a long text is read before the answer."),
    ] = "auto"
    keep_pct: Annotated[
        float,
        number(1.0, 100.0, unit="%", step=1.0),
        about(
            "Keep",
            "Share of the text that is chosen for the question. The question, the beginning and the"
            " end are read in addition. 100 reads everything.",
        ),
    ] = 12.0
    threshold_tokens: Annotated[
        int,
        number(64, 1_048_576, unit="tokens"),
        about("Threshold", "A prompt with fewer new tokens is read whole, however long that takes."),
    ] = 2048
    patience_s: Annotated[
        float,
        number(0.0, 3600.0, unit="s", step=1.0),
        about("Patience", "In automatic mode, a text that takes no longer than this to read is read whole."),
    ] = 8.0
    scorer: Annotated[
        ScorerChoice,
        choice(
            {
                "auto": (
                    "Automatic",
                    "Words and meaning, or words alone in a language that the encoder does not support.",
                ),
                "lexical": ("Words", "Words of the question and parts of them. Fastest, weak on paraphrase."),
                "fusion": ("Words and meaning", "The ranks by words and by meaning, added."),
                "draft-model": ("Draft model", "Attention of a smaller model of the same family."),
            }
        ),
        about("Scorer", "How passages are rated for the question."),
    ] = "auto"
    passages: Annotated[
        PassagesChoice,
        choice(
            {
                "sentences": (
                    "Sentences",
                    "At the ends of paragraphs, lines and sentences, about every 32 tokens.",
                ),
                "fixed": ("Fixed length", f"Every {PASSAGE_TOKENS} tokens, as in the SpecPrefill paper."),
            }
        ),
        about("Passages", "Where a text is cut into the passages that are kept or skipped."),
    ] = "sentences"
    chunk_tokens: Annotated[
        int,
        number(32, 8192, unit="tokens"),
        about("Prefill chunk", "Tokens read at a time. Stop takes effect between two chunks."),
    ] = 512
    context_tokens: Annotated[
        int,
        number(0, 1_048_576, unit="tokens"),
        about(
            "Context limit",
            "Maximum length of a chat with its answer. Less saves memory. 0: the model’s own limit.",
        ),
    ] = 0
    memory_mib: Annotated[
        int,
        number(0, 1_048_576, unit="MiB"),
        about(
            "Prompt cache",
            "Memory for prompts that were read, so that later questions need not read them again.",
        ),
    ] = 2048
    save: Annotated[
        bool,
        about(
            "Save on disk",
            "Saves the KV cache of a chat on this machine, so that the chat answers at once when it is"
            " opened again. It is erased with the chat.",
        ),
    ] = True
    read_ahead: Annotated[
        ReadAheadChoice,
        choice(
            {
                "auto": (
                    "Automatic",
                    "With models that answer well from a whole text. Not in “Low Power Mode” or below"
                    " 20% of battery.",
                ),
                "on": ("On", "With every model."),
                "off": ("Off", "Reading begins with the question."),
            }
        ),
        about("Read ahead", "Attached documents are read while you type, so that the answer starts at once."),
    ] = "auto"
    read_on: Annotated[
        ReadOnChoice,
        choice(
            {
                "quote": ("Quote", "Repeated before the question."),
                "off": ("Leave out", "Skipped passages stay unread."),
            }
        ),
        about("Later questions", "What happens to skipped passages that a later question makes relevant."),
    ] = "quote"

    def is_quick(self, new_tokens: int, dense_s: float | None) -> bool:
        """Whether a dense prefill of `new_tokens` is short enough for automatic mode.

        `dense_s`: its predicted seconds, None before the machine was measured. Then the threshold alone
        decides: skipping passages of a text that is quick to read costs less than a wait of a minute.
        """
        return new_tokens < self.threshold_tokens or (dense_s is not None and dense_s <= self.patience_s)

    @property
    def compares_meaning(self) -> bool:
        """Whether passages are compared with the question by meaning, for which documents are embedded."""
        return self.mode != "off" and self.scorer not in ("lexical", "draft-model")

    @property
    def reads_beyond(self) -> bool:
        """Whether a text longer than the context is read in part, as many passages as fit."""
        return self.mode != "off" and self.keep_pct < 100

    def context_of(self, model_tokens: int) -> int:
        """The context's length, in tokens, with a model whose limit is `model_tokens`."""
        return min(self.context_tokens or model_tokens, model_tokens)


KvBits = Literal["off", "8", "4"]
# Group size of quantization: the largest of these that divides a head's dimensions. 64: as in mlx-lm.
KV_GROUP_SIZES = (64, 32)


class KvCache(Struct, frozen=True, forbid_unknown_fields=True):
    """Precision of the KV cache. Only layers that keep the whole text are quantised."""

    bits: Annotated[
        KvBits,
        choice(
            {
                "off": ("Off", "The precision that the model computes with."),
                "8": ("8 bits", "About half the memory. Answers hardly change."),
                "4": ("4 bits", "Less than a third of the memory. Some models answer noticeably worse."),
            }
        ),
        about("Quantize", "The KV cache takes less memory, at a lower precision. Answers change slightly."),
    ] = "off"


# Shorter contexts are useless for a chat.
_LEAST_CONTEXT_TOKENS = 512


def smaller_context(tokens: int) -> int:
    """The next smaller context to try after `tokens` were too many: a power of two; 0 if none is left."""
    smaller = (1 << max(0, tokens - 1).bit_length()) >> 1
    return smaller if _LEAST_CONTEXT_TOKENS <= smaller < tokens else 0
