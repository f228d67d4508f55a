"""The drafters' settings: the seeds' constants as defaults, bounds, and rules that span fields."""

from __future__ import annotations

import typing

import msgspec
import pytest

from core.errors import SettingError
from core.settings.drafting import Cacheback, Frequency, Gate, NgramMod, check_cacheback, check_slots


def test_the_seeds_constants_are_the_defaults() -> None:
    mod, frequency, cacheback = NgramMod(), Frequency(), Cacheback()
    assert (mod.n, mod.slots) == (16, 4 * 1024 * 1024)
    assert (frequency.order_max, frequency.k) == (4, 4)
    assert (cacheback.leader_tokens, cacheback.follower_tokens) == (1, 3)
    assert (cacheback.leader_capacity, cacheback.follower_capacity) == (2**20, 128)
    assert (cacheback.tree_tokens, cacheback.reserved_tokens, cacheback.mode) == (96, 16, "dual")
    assert cacheback.tree == "planned"


@pytest.mark.parametrize("group", [NgramMod, Frequency, Cacheback, Gate])
def test_every_field_has_a_title_a_help_text_and_an_allowed_default(group: type[msgspec.Struct]) -> None:
    for name, hint in typing.get_type_hints(group, include_extras=True).items():
        metas = typing.get_args(hint)[1:]
        assert [bool(meta.title and meta.description) for meta in metas].count(True) == 1, name
    assert msgspec.convert(msgspec.to_builtins(group()), group) == group()


@pytest.mark.parametrize(
    ("group", "wrong"),
    [
        (NgramMod, {"n": 1}),
        (NgramMod, {"k": 0}),
        (NgramMod, {"slots": 2**23}),
        (Frequency, {"order_max": 1}),
        (Cacheback, {"mode": "both"}),
        (Cacheback, {"tree_tokens": 257}),
        (Gate, {"unknown": 1}),
    ],
)
def test_what_is_not_allowed_is_refused(group: type[msgspec.Struct], wrong: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, group)


@pytest.mark.parametrize("slots", [4095, 4097, 6000, 2**22 + 1])
def test_a_size_that_is_no_power_of_two_is_refused(slots: int) -> None:
    with pytest.raises(SettingError, match=f"{slots:,} slots is not possible"):
        check_slots(slots)


def test_powers_of_two_and_small_reserves_pass() -> None:
    for bits in range(12, 23):
        check_slots(2**bits)
    check_cacheback(Cacheback())
    check_cacheback(Cacheback(tree_tokens=2, reserved_tokens=0))


def test_a_reserve_as_large_as_the_tree_is_refused() -> None:
    with pytest.raises(SettingError, match="Keeping 94 tokens for depth leaves no space in a tree of 95"):
        check_cacheback(Cacheback(tree_tokens=95, reserved_tokens=94))
