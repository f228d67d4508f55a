"""The name of the app in the menu bar of macOS when it runs from source: which messages are sent."""

from __future__ import annotations

from app.launch.macos.objc import Objc, set_bundle_name
from tests.app.launch.macos.test_awake import Runtime


class Bundle(Runtime):
    """A runtime whose dictionary accepts values, or does not."""

    def __init__(self, *, accepts: bool) -> None:
        super().__init__()
        self._accepts = accepts

    def _send(self, receiver: int, selector: int, first: int | None, second: int | None) -> int:
        super()._send(receiver, selector, first, second)
        if self._name(selector) == "respondsToSelector:":
            assert self._name(first or 0) == "setObject:forKey:"
            return 0xFF00 | int(self._accepts)  # BOOL is the lowest byte
        return 7 if self._name(selector) == "stringWithUTF8String:" else 8


def test_the_name_is_written_into_the_bundles_dictionary() -> None:
    runtime = Bundle(accepts=True)
    set_bundle_name("Draftlight", Objc(runtime))
    assert runtime.sent[0] == ("NSBundle", "mainBundle")
    assert runtime.sent[-1] == ("8", "setObject:forKey:")
    assert runtime.texts == [b"Draftlight", b"CFBundleName"]


def test_a_dictionary_that_accepts_none_is_left_alone() -> None:
    runtime = Bundle(accepts=False)
    set_bundle_name("Draftlight", Objc(runtime))
    assert "setObject:forKey:" not in [name for _, name in runtime.sent]
