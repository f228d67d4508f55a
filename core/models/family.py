"""Tokenizer family: models whose token-to-id maps are identical.

Everything that works in token ids (drafters, tables, a draft model) may be shared inside a
family and nowhere else. The fingerprint is the SHA-256 of the sorted vocabulary, added tokens
included, so it does not depend on file formats or on the order of a JSON object.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from core.system.paths import cache_dir


def fingerprint(vocabulary: Mapping[str, int]) -> str:
    """64 hex digits that are equal exactly if the token-to-id maps are."""
    # One string and one call: 49,152 pairs, sorted as such and added one by one, take three times as long.
    lines = "".join([f"{token}\0{vocabulary[token]}\n" for token in sorted(vocabulary)])
    return hashlib.sha256(lines.encode("utf-8", "surrogatepass")).hexdigest()


def family_of(folder: Path) -> str:
    """The fingerprint of the tokenizer in `folder`, without its model; empty if it cannot be told.

    Tokenizers that have no tokenizer.json are left to the loader. What was found is remembered for
    as long as the files stay as they are: a vocabulary takes a quarter of a second to read.
    """
    path, settings = folder / "tokenizer.json", folder / "tokenizer_config.json"
    try:
        stats = [each.stat() for each in (path, settings) if each.exists()]
        seen = f"{path.resolve()}:{[(stat.st_size, stat.st_mtime_ns) for stat in stats]}"
        note = cache_dir() / "families" / hashlib.sha256(seen.encode()).hexdigest()[:32]
        if note.is_file():
            return note.read_text(encoding="ascii")
        found = fingerprint(_vocabulary(path, settings))
        note.parent.mkdir(parents=True, exist_ok=True)
        fresh = note.with_name(f"{note.name}.{os.getpid()}")
        fresh.write_text(found, encoding="ascii")
        os.replace(fresh, note)
    except Exception:  # files that cannot be read, and the tokenizer library raises plain Exception
        return ""
    return found


def _vocabulary(path: Path, settings: Path) -> dict[str, int]:
    """As the loaded tokenizer would have it: tokens that only the settings add are in it, too."""
    from tokenizers import Tokenizer

    vocabulary: dict[str, int] = Tokenizer.from_file(str(path)).get_vocab(with_added_tokens=True)
    if settings.exists():
        added = json.loads(settings.read_text(encoding="utf-8")).get("added_tokens_decoder", {})
        for index, token in added.items():
            vocabulary.setdefault(str(token["content"]), int(index))
    return vocabulary
