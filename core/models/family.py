"""Tokenizer family: models whose token-to-id maps are identical.

Everything that works in token ids (drafters, tables, a draft model) may be shared inside a
family and nowhere else. The fingerprint is the SHA-256 of the sorted vocabulary, added tokens
included, so it does not depend on file formats or on the order of a JSON object.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping


def fingerprint(vocabulary: Mapping[str, int]) -> str:
    """64 hex digits that are equal exactly if the token-to-id maps are."""
    digest = hashlib.sha256()
    for token, index in sorted(vocabulary.items()):
        digest.update(token.encode("utf-8", "surrogatepass") + b"\0" + str(index).encode() + b"\n")
    return digest.hexdigest()
