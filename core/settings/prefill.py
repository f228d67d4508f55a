"""Settings of prefill: how the prompt is read, all of it or the parts that matter."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct

PrefillMode = Literal["auto", "off", "on"]
ReadOnChoice = Literal["quote", "off"]
PassagesChoice = Literal["sentences", "fixed"]
ScorerChoice = Literal["auto", "lexical", "embedding", "fusion", "draft-model"]
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
        Meta(
            title="Reading",
            description="How much of a long text is read before the answer.",
            extra={
                "labels": {"auto": "Automatic", "off": "Whole", "on": "Quick"},
                "notes": {
                    "auto": "Skips passages of long texts, unless the question needs every word.",
                    "off": "Reads every word.",
                    "on": "Skips passages in every text, however short.",
                },
            },
        ),
    ] = "auto"
    keep_pct: Annotated[
        float,
        Meta(
            ge=1.0,
            le=100.0,
            title="Keep",
            description="The share of the text that is chosen. The question, the beginning and the end are"
            " read in addition. 100 reads all of it.",
            extra={"unit": "%", "step": 1.0},
        ),
    ] = 12.0
    threshold_tokens: Annotated[
        int,
        Meta(
            ge=64,
            le=1_048_576,
            title="Threshold",
            description="A prompt with fewer new tokens is read whole, however long that takes.",
            extra={"unit": "tokens"},
        ),
    ] = 2048
    patience_s: Annotated[
        float,
        Meta(
            ge=0.0,
            le=3600.0,
            title="Patience",
            description="In automatic mode, a text that takes no longer than this to read is read whole.",
            extra={"unit": "s", "step": 1.0},
        ),
    ] = 8.0
    scorer: Annotated[
        ScorerChoice,
        Meta(
            title="Scorer",
            description="What decides which passages matter.",
            extra={
                "labels": {
                    "auto": "Automatic",
                    "lexical": "Words",
                    "embedding": "Meaning",
                    "fusion": "Words and meaning",
                    "draft-model": "Draft model",
                },
                "notes": {
                    "auto": "Words and meaning, or words alone in a language that the encoder does not know.",
                    "lexical": "Words and parts of words that both have. Fastest, weak on paraphrase.",
                    "embedding": "What a small sentence encoder takes for similar.",
                    "fusion": "The ranks by words and by meaning, added.",
                    "draft-model": "What a smaller model of the family pays attention to.",
                },
            },
        ),
    ] = "auto"
    passages: Annotated[
        PassagesChoice,
        Meta(
            title="Passages",
            description="Where a text is cut into the passages that are kept or skipped.",
            extra={
                "labels": {"sentences": "Sentences", "fixed": "Fixed length"},
                "notes": {
                    "sentences": "At the ends of paragraphs, lines and sentences, about every 32 tokens.",
                    "fixed": f"Every {PASSAGE_TOKENS} tokens, as in the SpecPrefill paper.",
                },
            },
        ),
    ] = "sentences"
    chunk_tokens: Annotated[
        int,
        Meta(
            ge=32,
            le=8192,
            title="Prefill chunk",
            description="Tokens read between two looks at the stop button.",
            extra={"unit": "tokens"},
        ),
    ] = 512
    context_tokens: Annotated[
        int,
        Meta(
            ge=0,
            le=1_048_576,
            title="Context limit",
            description="How long a chat with its answer may become. Less saves memory. 0: the model's own.",
            extra={"unit": "tokens"},
        ),
    ] = 0
    memory_mib: Annotated[
        int,
        Meta(
            ge=0,
            le=1_048_576,
            title="Prompt cache",
            description="What was read stays in memory up to this much, so that it need not be read again.",
            extra={"unit": "MiB"},
        ),
    ] = 2048
    save: Annotated[
        bool,
        Meta(
            title="Save on disk",
            description="What was read of a chat is saved on this machine, so that the chat answers at once"
            " when it is opened again. It is erased with the chat.",
        ),
    ] = True
    disk_mib: Annotated[
        int,
        Meta(
            ge=0,
            le=1_048_576,
            title="Disk space",
            description="Saved chats take up to this much; those used least recently are removed first.",
            extra={"unit": "MiB"},
        ),
    ] = 4096
    disk_daily_mib: Annotated[
        int,
        Meta(
            ge=0,
            le=16_777_216,
            title="Written per day",
            description="No more than this is saved in a day, which spares the disk.",
            extra={"unit": "MiB"},
        ),
    ] = 20_480
    read_on: Annotated[
        ReadOnChoice,
        Meta(
            title="Later questions",
            description="What becomes of skipped passages that a later question makes relevant.",
            extra={
                "labels": {"quote": "Quote", "off": "Leave out"},
                "notes": {
                    "quote": "Repeated before the question.",
                    "off": "Nothing more is read of a text that was read sparsely.",
                },
            },
        ),
    ] = "quote"
    finish_reading: Annotated[
        bool,
        Meta(
            title="Read the rest while idle",
            description="What an answer skipped is read quietly after it, for the next one.",
        ),
    ] = False

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
        Meta(
            title="Quantize",
            description="The KV cache takes less memory, at a lower precision. Answers change slightly.",
            extra={
                "labels": {"off": "Off", "8": "8 bits", "4": "4 bits"},
                "notes": {
                    "off": "The precision that the model computes with.",
                    "8": "About half the memory. Answers hardly change.",
                    "4": "Less than a third of the memory. Some models answer noticeably worse.",
                },
            },
        ),
    ] = "off"
    start_tokens: Annotated[
        int,
        Meta(
            ge=0,
            le=1_048_576,
            title="Quantize from",
            description="A chat keeps full precision until it holds this number of tokens. 0: from the start,"
            " so that every common beginning of two chats can be reused.",
            extra={"unit": "tokens"},
        ),
    ] = 0


# Shorter contexts are useless for a chat.
_LEAST_CONTEXT_TOKENS = 512


def smaller_context(tokens: int) -> int:
    """The next smaller context to try after `tokens` were too much: a power of two; 0 if there is none."""
    smaller = (1 << max(0, tokens - 1).bit_length()) >> 1
    return smaller if _LEAST_CONTEXT_TOKENS <= smaller < tokens else 0
