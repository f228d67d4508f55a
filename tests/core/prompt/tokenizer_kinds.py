"""Small tokenizers of every kind, with control tokens, trained on a few sentences."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from mlx_lm.tokenizer_utils import TokenizerWrapper
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

SPECIAL = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>", "[INST]"]
# Added tokens that are not special: the first two are control tokens, the others are text.
ADDED = ["<tool_call>", "</tool_call>", "<table>", "\n\n"]
CONTROL = [*SPECIAL, *ADDED[:2]]
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_TEXT = [
    "system user assistant tool The quick brown fox jumps over the lazy dog.",
    "An im_start or im_end is a mark | between < and > signs, and [ INST ] too.",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. é 🎈",
    "    indented code = {'a': [1, 2, 3]}\n\n  more\n",
]
_BYTES = list(pre_tokenizers.ByteLevel.alphabet())


def _byte_level() -> Tokenizer:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=420, initial_alphabet=_BYTES, special_tokens=SPECIAL)
    made.train_from_iterator(_TEXT, trainer)
    return made


def _tekken() -> Tokenizer:
    made = Tokenizer(models.BPE(ignore_merges=True))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\s+|[^\s\p{L}\p{N}]+|[\p{L}\p{N}]+"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=420, initial_alphabet=_BYTES, special_tokens=SPECIAL)
    made.train_from_iterator([*_TEXT, *SPECIAL * 50], trainer)
    return made


def _fallback_bytes() -> list[str]:
    return [f"<0x{byte:02X}>" for byte in range(256)]


def _sentencepiece_bpe(first_only: bool) -> Tokenizer:
    made = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    if first_only:
        made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    else:
        made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=[*SPECIAL, *_fallback_bytes()])
    made.train_from_iterator(_TEXT, trainer)
    return made


def _unigram() -> Tokenizer:
    """With pieces for the control tokens, as converted SentencePiece models have them."""
    made = Tokenizer(models.Unigram())
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=150, special_tokens=SPECIAL, unk_token="<unk>")
    made.train_from_iterator(_TEXT, trainer)
    return made


def _word_piece() -> Tokenizer:
    made = Tokenizer(models.WordPiece(unk_token="<unk>"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=300, special_tokens=SPECIAL)
    made.train_from_iterator(_TEXT, trainer)
    return made


def _words() -> Tokenizer:
    made = Tokenizer(models.WordLevel(unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.train_from_iterator(_TEXT, trainers.WordLevelTrainer(special_tokens=SPECIAL))
    return made


KINDS: dict[str, Callable[[], Tokenizer]] = {
    "byte-level BPE": _byte_level,
    "tekken": _tekken,
    "SentencePiece BPE": lambda: _sentencepiece_bpe(True),
    "SentencePiece BPE, legacy": lambda: _sentencepiece_bpe(False),
    "Unigram": _unigram,
    "WordPiece": _word_piece,
    "words": _words,
}


@cache
def _trained(kind: str) -> str:
    return KINDS[kind]().to_str()


@cache
def tokenizer_of(kind: str, template: str = TEMPLATE, **added: bool) -> TokenizerWrapper:
    """A tokenizer of that kind; `added` are flags of its added tokens."""
    tokenizer = Tokenizer.from_str(_trained(kind))
    tokenizer.add_special_tokens([AddedToken(token, special=True, **added) for token in SPECIAL])
    tokenizer.add_tokens([AddedToken(token, normalized=False) for token in ADDED])
    inner = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")
    inner.chat_template = template
    return TokenizerWrapper(inner)
