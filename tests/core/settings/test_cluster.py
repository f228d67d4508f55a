"""A list of machines: what is taken, and that what is wrong is named."""

from __future__ import annotations

import pytest

from core.errors import SettingError
from core.settings.cluster import Cluster, Machine, cluster_of


def test_what_is_not_said_has_a_default() -> None:
    found = cluster_of(b'{"machines": [{"name": "studio", "address": "10.0.0.2"}]}', "m.json")
    assert found == Cluster((Machine("studio", "10.0.0.2"),))
    assert (found.size, found.backend, found.split) == (2, "auto", "auto")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (b"", "m.json"),
        (b"[]", "Expected `object`"),
        (b'{"machines": [{"name": "studio"}]}', "address"),
        (b'{"machines": [], "speed": 1}', "speed"),
        (b'{"backend": "wifi"}', "wifi"),
        (b'{"deadline_s": 0}', "1.0"),
        (b'{"machines": [{"name": "a", "address": "x"}, {"name": "a", "address": "y"}]}', "“a”"),
        (b" " * (1 << 21), "2,097,152 bytes"),
    ],
)
def test_what_is_wrong_is_named(text: bytes, named: str) -> None:
    with pytest.raises(SettingError, match=r"m\.json") as caught:
        cluster_of(text, "m.json")
    assert named in str(caught.value)
