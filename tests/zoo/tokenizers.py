"""Tokenizers of the kinds that public models have, trained on a page of text.

Each kind has merges that cross line ends and punctuation, so that text encoded in pieces differs from
text encoded whole wherever the pieces are cut at the wrong character.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Literal

from msgspec import Struct
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers.trainers import BpeTrainer

TokenizerKind = Literal[
    "byte-level", "byte-level-nfc", "sentencepiece", "sentencepiece-prefix", "metaspace", "unigram", "tekken"
]

_MERGES = 120
_CORPUS = [
    "You are a helpful assistant.\n\nAnswer the question: what is the capital of France?\nIt is Paris.\n",
    "First I check the numbers.\n\nThen I add them: two and two is four.\n\n- one\n- two\n- three\n\n",
    'def add(a, b):\n    return a + b\n\n\nprint(add(1, 2))\n\n{"name": "add", "arguments": {"a": 1}}\n',
    "Question: how many?\n\nAnswer: 42.\n\nThanks, that helps. Is it the same for the other one?\n",
    "<b>bold</b> and <i>italic</i>\n> quoted\n| a | b |\n|---|---|\n\n" * 2,
]
_BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
_WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


class Added(Struct, frozen=True):
    """A token beside the learned ones. `special`: left out by decoders that skip special tokens."""

    text: str
    special: bool = True
    rstrip: bool = False


def tokenizer(kind: TokenizerKind, added: tuple[Added, ...], bos: str = "") -> Tokenizer:
    """A tokenizer of that kind; `bos` is put before every text that is encoded with special tokens."""
    made = Tokenizer.from_str(_base(kind))
    for token in added:
        content = AddedToken(token.text, special=token.special, rstrip=token.rstrip, normalized=False)
        if token.special:
            made.add_special_tokens([content])
        else:
            made.add_tokens([content])
    if bos:
        made.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", pair=f"{bos} $A {bos} $B", special_tokens=[(bos, made.token_to_id(bos))]
        )
    return made


@cache
def _base(kind: TokenizerKind) -> str:
    if kind in ("byte-level", "byte-level-nfc", "tekken"):
        made = _byte_level()
        if kind == "byte-level-nfc":
            made.normalizer = normalizers.NFC()
        if kind == "tekken":
            made.decoder = _sentencepiece_decoder(strip=False)
    else:
        made = _sentencepiece(kind)
    return str(made.to_str())


def _byte_level() -> Tokenizer:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    made.train_from_iterator(
        _CORPUS,
        BpeTrainer(
            vocab_size=256 + _MERGES, initial_alphabet=letters, special_tokens=[], show_progress=False
        ),
    )
    return made


def _sentencepiece(kind: TokenizerKind) -> Tokenizer:
    """BPE or Unigram over characters, with bytes for those that are unknown."""
    learner = Tokenizer(models.BPE())
    learner.normalizer = normalizers.Replace(" ", "▁")
    learner.pre_tokenizer = pre_tokenizers.Split(Regex("▁+"), "merged_with_next")
    trainer = BpeTrainer(vocab_size=100 + _MERGES, special_tokens=[], show_progress=False)
    learner.train_from_iterator(_CORPUS, trainer)
    learned = json.loads(learner.to_str())["model"]
    pieces = ["<unk>", *_BYTES, *(piece for piece in learned["vocab"] if piece not in _BYTES)]
    if "▁" not in pieces:
        pieces.append("▁")
    if kind == "unigram":
        scores = [(piece, 0.0 if at < 257 else -float(at) / 100 - 1.0) for at, piece in enumerate(pieces)]
        made = Tokenizer(models.Unigram(scores, unk_id=0, byte_fallback=True))
    else:
        vocabulary = {piece: at for at, piece in enumerate(pieces)}
        merges = [tuple(merge) for merge in learned["merges"]]
        made = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    if kind in ("metaspace", "unigram"):
        made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
        # As conversions from SentencePiece write it.
        made.decoder = decoders.Sequence(
            [decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="first", split=False)]
        )
        return made
    prefix = kind == "sentencepiece-prefix"
    steps = [normalizers.Prepend("▁")] if prefix else []
    made.normalizer = normalizers.Sequence([*steps, normalizers.Replace(" ", "▁")])
    made.decoder = _sentencepiece_decoder(strip=prefix)
    return made


def _sentencepiece_decoder(*, strip: bool) -> decoders.Decoder:
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    return decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)] if strip else steps)
