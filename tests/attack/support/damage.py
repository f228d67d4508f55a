"""Damage of a file's bytes, whatever they mean (None makes the file a folder), and of what JSON says."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable, Iterator
from typing import Any


def flips(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8, 64))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def flips_ahead(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    changed[rng.randrange(min(3000, len(changed)))] = rng.randrange(256)
    return bytes(changed)


def cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.choice((0, 1, 7, 8, 9, len(data) - 1, rng.randrange(len(data))))]


def grown(data: bytes, rng: random.Random) -> bytes:
    return data + rng.randbytes(rng.randrange(1, 5000))


def zeros(data: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(data))
    return data[:start] + bytes(len(data) - start)


def hole(data: bytes, rng: random.Random) -> bytes:
    """A block that never reached the disk."""
    start = rng.randrange(len(data)) // 4096 * 4096
    return data[:start] + bytes(min(4096, len(data) - start)) + data[start + 4096 :]


def noise(data: bytes, rng: random.Random) -> bytes:
    return rng.randbytes(rng.randrange(0, 5000))


def swollen_length(data: bytes, rng: random.Random) -> bytes:
    """The first eight bytes of a safetensors file say how long its header is."""
    length = rng.choice((0, 1, 2**31, 2**40, 2**63, 2**64 - 1, rng.randrange(len(data))))
    return struct.pack("<Q", length) + data[8:]


def folder(data: bytes, rng: random.Random) -> bytes | None:
    return None


DAMAGES: tuple[Callable[[bytes, random.Random], bytes | None], ...] = (
    *(flips, flips_ahead, cut, grown, zeros, hole, noise, swollen_length, folder),
)


def broken_bytes(data: bytes, dice: random.Random) -> bytes:
    """A text that ends early, has other bytes in it, is of another encoding, or is no text at all."""
    for _ in range(dice.randint(1, 3)):
        place = dice.randrange(len(data) + 1)
        match dice.randrange(8):
            case 0:
                data = data[:place]
            case 1:
                data = data[:place] + dice.randbytes(dice.randint(1, 20)) + data[place + 1 :]
            case 2:
                marks = [b'"', b"\\", b"{", b"]", b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\xc0\x80"]
                data = data[:place] + dice.choice(marks) + data[place:]
            case 3:
                nested = dice.choice([b"[", b'{"a":']) * dice.choice([10, 1_500, 100_000])
                data = data[:place] + nested + data[place:]
            case 4:
                data = data[place:]
            case 5:
                other = dice.choice(["utf-16", "utf-8-sig", "utf-16-be"])
                data = data.decode("utf-8", "replace").encode(other)
            case 6:
                data = data[:place] + data[place // 2 :]
            case _:
                data = dice.randbytes(dice.randint(0, 3_000))
    return data


VALUES: tuple[Callable[[random.Random], Any], ...] = (
    lambda dice: None,
    lambda dice: dice.choice([True, False]),
    lambda dice: dice.choice([0, -1, 2**31, 2**53 + 1, 2**63, 2**64, -(10**40), 10**400]),
    lambda dice: dice.choice([0.0, -1e308, 1e308, 5e-324, 1.5, float("nan"), float("inf")]),
    lambda dice: dice.choice(["", "0001-01-01T00:00:00", "9999-12-31T23:59:59Z", "NaN", "a" * 20_000, "😀"]),
    lambda dice: dice.choice(["\ud800", "\udfff\ud83d", "\x00", "\u202e\r\n\u2028", "\ue200" * 5_000]),
    lambda dice: dice.choice(["<think>", "</think>", '<details type="reasoning">' * 2_000]),
    lambda dice: [],
    lambda dice: {},
    lambda dice: [[{"a": [None]}]] * 50,
    lambda dice: {"x": {"x": {"x": -1}}, "": 0},
)


def damage_value(root: Any, dice: random.Random) -> None:
    """Something in the JSON `root` is missing, doubled, in another place, nested, or has another value."""
    places = list(_places(root))
    if not places:
        return
    holder, key = dice.choice(places)
    match dice.randrange(5):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, list):
            holder.append(json.loads(json.dumps(holder[key])))
        case 2:
            other, elsewhere = dice.choice(places)
            holder[key] = json.loads(json.dumps(other[elsewhere]))
        case 3:
            for _ in range(dice.choice([1, 30, 150])):
                holder[key] = [holder[key]] if dice.random() < 0.5 else {"a": holder[key]}
        case _:
            holder[key] = dice.choice(VALUES)(dice)


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Everything that can be replaced: its holder and where it is there."""
    waiting = [node]
    while waiting:
        holder = waiting.pop()
        for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
            yield holder, key
            if isinstance(holder[key], dict | list):
                waiting.append(holder[key])
