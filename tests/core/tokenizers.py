"""Small tokenizers of every kind that models have, trained on a few lines; as folders that mlx-lm loads."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from mlx_lm.tokenizer_utils import TokenizerWrapper
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from core.models.loader import load_family

_LINES = [
    "def total(values):\n    for value in values:\n        if value > 10:\n            yield value  # ten",
    "The capital of France is Paris, isn't it? I'm glad you're here; they've said 'no' and 'yes'.",
    "Straße, naïve café, 日本語のテキスト, привет мир, שלום עולם, مرحبا, नमस्ते, 한국어",
    "x = {'a': 1, 'b': [2, 3]}\n\n\treturn x.get('a') or 0  ...",
] * 4
_SPECIALS = ["<s>", "</s>", "<unk>", "<|turn|>"]
_BYTES = [f"<0x{value:02X}>" for value in range(256)]
_SPACE = "▁"

_replace = decoders.Replace(_SPACE, " ")
_fuse, _fallback = decoders.Fuse(), decoders.ByteFallback()


def _byte_level(*, prefix: bool = False, split: bool = False) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    level = pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=not split)
    words = pre_tokenizers.Split(Regex(r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+"), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, level]) if split else level
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=_SPECIALS, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(_LINES, trainer)
    return tokenizer


def _hybrid(decoder: decoders.Decoder) -> Tokenizer:
    """A byte-level vocabulary with another decoder, as some tekken conversions have it."""
    tokenizer = _byte_level(split=True)
    tokenizer.decoder = decoder
    return tokenizer


def _sentencepiece(decoder: decoders.Decoder, *, prepend: bool = True) -> Tokenizer:
    """BPE with byte fallback, as SentencePiece models are converted."""
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always" if prepend else "never")
    ascii_only = [line.encode("ascii", "ignore").decode() for line in _LINES]
    trained.train_from_iterator(ascii_only, trainers.BpeTrainer(vocab_size=160, show_progress=False))
    model = json.loads(trained.to_str())["model"]
    pieces = [*_SPECIALS, *_BYTES, *sorted(model["vocab"], key=model["vocab"].get), "▁▁", "▁▁▁▁"]
    merges = [*(tuple(merge) for merge in model["merges"]), (_SPACE, _SPACE), ("▁▁", "▁▁")]
    tokenizer = Tokenizer(
        models.BPE(
            {piece: index for index, piece in enumerate(dict.fromkeys(pieces))},
            list(dict.fromkeys(merges)),
            unk_token="<unk>",
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    steps = [normalizers.Prepend(_SPACE)] if prepend else []
    tokenizer.normalizer = normalizers.Sequence([*steps, normalizers.Replace(" ", _SPACE)])
    tokenizer.decoder = decoder
    tokenizer.add_special_tokens(_SPECIALS)
    return tokenizer


def _unigram(scheme: str, *, fallback: bool = False) -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme=scheme)
    specials = [*_SPECIALS, *_BYTES] if fallback else _SPECIALS
    trainer = trainers.UnigramTrainer(
        vocab_size=120 + len(specials), special_tokens=specials, unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(_LINES, trainer)
    if fallback:
        state = json.loads(tokenizer.to_str())
        state["model"]["byte_fallback"] = True
        state["added_tokens"] = [each for each in state["added_tokens"] if each["content"] in _SPECIALS]
        tokenizer = Tokenizer.from_str(json.dumps(state))
        tokenizer.decoder = decoders.Sequence([_fallback, decoders.Metaspace(prepend_scheme=scheme)])
    return tokenizer


def _wordpiece(*, cleanup: bool) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(cleanup=cleanup)
    trainer = trainers.WordPieceTrainer(vocab_size=300, special_tokens=_SPECIALS, show_progress=False)
    tokenizer.train_from_iterator(_LINES, trainer)
    return tokenizer


def _word_ends() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.decoder = decoders.BPEDecoder(suffix="</w>")
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=_SPECIALS, end_of_word_suffix="</w>", show_progress=False
    )
    tokenizer.train_from_iterator(_LINES, trainer)
    return tokenizer


def _spm(*steps: decoders.Decoder) -> decoders.Decoder:
    return decoders.Sequence(list(steps))


_strip = decoders.Strip(" ", 1, 0)
KINDS: Mapping[str, Callable[[], Tokenizer]] = {
    "byte-level": _byte_level,
    "byte-level-prefix": lambda: _byte_level(prefix=True),
    "byte-level-split": lambda: _byte_level(split=True),
    "hybrid-sentencepiece": lambda: _hybrid(_spm(_replace, _fallback, _fuse, _strip)),
    "hybrid-metaspace": lambda: _hybrid(decoders.Metaspace()),
    "hybrid-both": lambda: _hybrid(_spm(decoders.ByteLevel(), decoders.Metaspace(prepend_scheme="never"))),
    "hybrid-nothing": lambda: _hybrid(_spm(_fuse)),
    "sentencepiece": lambda: _sentencepiece(_spm(_replace, _fallback, _fuse, _strip)),
    "sentencepiece-no-strip": lambda: _sentencepiece(_spm(_replace, _fallback, _fuse), prepend=False),
    "sentencepiece-other-order": lambda: _sentencepiece(_spm(_fallback, _fuse, _replace, _strip)),
    "sentencepiece-metaspace": lambda: _sentencepiece(_spm(_fallback, _fuse, decoders.Metaspace())),
    "sentencepiece-metaspace-first": lambda: _sentencepiece(_spm(decoders.Metaspace(), _fallback, _fuse)),
    "unigram-always": lambda: _unigram("always"),
    "unigram-first": lambda: _unigram("first"),
    "unigram-never": lambda: _unigram("never"),
    "unigram-fallback": lambda: _unigram("always", fallback=True),
    "wordpiece": lambda: _wordpiece(cleanup=False),
    "wordpiece-cleanup": lambda: _wordpiece(cleanup=True),
    "wordpiece-cleaned": lambda: _wordpiece(cleanup=False),
    "unigram-cleaned": lambda: _unigram("always"),
    "word-ends": _word_ends,
}


def write(kind: str, folder: Path) -> None:
    """The files of a tokenizer of the kind."""
    KINDS[kind]().save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "clean_up_tokenization_spaces": kind.endswith("-cleaned"),
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def loaded(kind: str, folder: Path) -> TokenizerWrapper:
    """The tokenizer as Draftlight loads it."""
    write(kind, folder)
    return load_family(str(folder)).tokenizer
