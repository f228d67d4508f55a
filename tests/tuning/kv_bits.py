"""Size and quality of quantised caches, for the table in docs/server.md.

    python -m tests.tuning kv-bits --out DIR

Reads 2,000 tokens of this repository's documentation in chunks of 64, each on the cache of those before, and
compares every next-token distribution with that of the full-precision cache.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

_TEXTS = ("docs/ui.md", "docs/reliability.md", "docs/models.md")
_TOKENS = 2000
_CHUNK_TOKENS = 64
_BITS = (0, 8, 4)


def run(options: argparse.Namespace) -> int:
    """Prints the table and writes it to the folder."""
    from core.models.runtime import prepare

    prepare()

    from core.models.loader import load

    loaded = load(options.model)
    text = "\n\n".join(Path(name).read_text() for name in _TEXTS)
    ids = loaded.tokenizer.encode(text, add_special_tokens=False)[: _TOKENS + 1]
    plain = None
    lines = [
        "| `kv.bits` | MiB | perplexity | same first choice | KL divergence |",
        "|---|---:|---:|---:|---:|",
    ]
    for bits in _BITS:
        size_bytes, found = _read(loaded, ids, bits)
        plain = found if plain is None else plain
        own = -found[np.arange(len(ids) - 1), ids[1:]].mean()
        same = (found.argmax(-1) == plain.argmax(-1)).mean()
        divergence = (np.exp(plain) * (plain - found)).sum(-1).mean()
        size = f"{size_bytes / 2**20:.1f}"
        lines.append(f"| {bits or 'off'} | {size} | {np.exp(own):.2f} | {same:.1%} | {divergence:.4f} |")
    print("\n".join(lines))
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "kv-bits.md").write_text("\n".join(lines) + "\n")
    return 0


def _read(loaded: Any, ids: list[int], bits: int) -> tuple[int, np.ndarray[Any, Any]]:
    """The cache's bytes after all ids but the last, and the log-probabilities after each of them."""
    import mlx.core as mx

    from core.kv.cached_sequence import CachedSequence
    from core.kv.mlx_lm_caches import KvQuantisation, quantisable

    kv = None
    if bits:
        kv = KvQuantisation(bits, quantisable(loaded.model, loaded.new_cache).groups)
    sequence, rows = CachedSequence(loaded.new_cache, kv), []
    for start in range(0, len(ids) - 1, _CHUNK_TOKENS):
        chunk = ids[start : min(start + _CHUNK_TOKENS, len(ids) - 1)]
        logits = loaded.model(mx.array(chunk)[None], cache=sequence.cache)[0].astype(mx.float32)
        rows.append(np.array(logits - mx.logsumexp(logits, axis=-1, keepdims=True)))
        sequence.append(chunk)
    return sequence.nbytes, np.concatenate(rows)
