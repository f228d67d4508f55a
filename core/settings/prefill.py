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
# Those that score themselves, the cheapest first; the registry has one entry for each.
SCORERS: tuple[str, ...] = tuple(name for name in get_args(ScorerChoice) if name != "auto")

# The end of a prompt is always read: this much of it, or, behind attachments, the question and the tokens
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
            "The share of the text that is chosen. The question, the beginning and the end are"
            " read in addition. 100 reads all of it.",
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
                    "Words and meaning, or words alone in a language that the encoder does not know.",
                ),
                "lexical": ("Words", "Words and parts of words that both have. Fastest, weak on paraphrase."),
                "fusion": ("Words and meaning", "The ranks by words and by meaning, added."),
                "draft-model": ("Draft model", "What a smaller model of the family pays attention to."),
            }
        ),
        about("Scorer", "What decides which passages matter."),
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
        about("Prefill chunk", "Tokens read between two looks at the stop button."),
    ] = 512
    context_tokens: Annotated[
        int,
        number(0, 1_048_576, unit="tokens"),
        about(
            "Context limit",
            "How long a chat with its answer may become. Less saves memory. 0: the model’s own.",
        ),
    ] = 0
    memory_mib: Annotated[
        int,
        number(0, 1_048_576, unit="MiB"),
        about(
            "Prompt cache",
            "What was read stays in memory up to this much, so that it need not be read again.",
        ),
    ] = 2048
    save: Annotated[
        bool,
        about(
            "Save on disk",
            "What was read of a chat is saved on this machine, so that the chat answers at once"
            " when it is opened again. It is erased with the chat.",
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
                "off": ("Leave out", "Nothing more is read of a text that was read sparsely."),
            }
        ),
        about("Later questions", "What becomes of skipped passages that a later question makes relevant."),
    ] = "quote"

    def is_quick(self, new_tokens: int, dense_s: float | None) -> bool:
        """Whether a dense prefill of that many tokens is short enough for automatic mode.

        `dense_s`: its predicted seconds, None before the machine was measured. Then the threshold alone
        decides: to skip passages of a text that would have been read in time costs less than a minute's wait.
        """
        return new_tokens < self.threshold_tokens or (dense_s is not None and dense_s <= self.patience_s)

    @property
    def compares_meaning(self) -> bool:
        """Whether passages are compared with the question by meaning, for which documents are embedded."""
        return self.mode != "off" and self.scorer not in ("lexical", "draft-model")

    @property
    def reads_beyond(self) -> bool:
        """Whether of a text longer than the context the passages that fit are read."""
        return self.mode != "off" and self.keep_pct < 100

    def context_of(self, model_tokens: int) -> int:
        """The context's length, in tokens, with a model that takes `model_tokens`."""
        return min(self.context_tokens or model_tokens, model_tokens)


KvBits = Literal["off", "8", "4"]
# Numbers that share a scale: the largest of these that divides the dimensions of a head. 64: as in mlx-lm.
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
    """The next smaller context to try after `tokens` were too much: a power of two; 0 if there is none."""
    smaller = (1 << max(0, tokens - 1).bit_length()) >> 1
    return smaller if _LEAST_CONTEXT_TOKENS <= smaller < tokens else 0
