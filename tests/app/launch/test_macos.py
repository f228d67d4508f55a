"""Keeping the system awake: once for an answer, never longer, and never at the answer's cost."""

from __future__ import annotations

import ctypes
import logging
import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.launch.macos import follow, set_bundle_name
from app.session.turn.link_state import Phase
from core.system.macos import Awake, Objc, ProcessInfoActivity, Working, footprint_bytes, sysctl

WORKING = {Phase.LOADING, Phase.READING, Phase.WRITING, Phase.STOPPING}


class Recorder:
    """Hands out tokens and notes what comes back."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.ended: list[int] = []

    def begin(self, reason: str) -> int:
        assert reason == "answering"
        self.begun.append(len(self.begun) + 1)
        return self.begun[-1]

    def end(self, token: int) -> None:
        self.ended.append(token)


@given(st.lists(st.sampled_from(Phase)))
def test_whatever_happens_each_token_ends_once_and_held_means_working(phases: list[Phase]) -> None:
    recorder = Recorder()
    awake = Awake(recorder, "answering")
    for phase in phases:
        follow(awake, phase)
        assert awake.held is (phase in WORKING)
        assert len(recorder.begun) - len(recorder.ended) == int(awake.held)
    awake.release()
    assert recorder.begun == recorder.ended


def test_a_system_that_refuses_is_asked_once_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    asked = []

    class Refusing(Recorder):
        def begin(self, reason: str) -> int:
            asked.append(reason)
            raise OSError("no")

    awake = Awake(Refusing(), "answering")
    with caplog.at_level(logging.WARNING, "draftlight.system"):
        for phase in (Phase.READING, Phase.READY, Phase.READING):
            follow(awake, phase)
    assert not awake.held
    assert len(asked) == len(caplog.records) == 1


class Runtime:
    """The Objective-C runtime's three functions, as C functions that note what they are called with."""

    PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_void_p, *[ctypes.c_void_p] * 4)

    def __init__(self) -> None:
        self.names: list[bytes] = []
        self.sent: list[tuple[str, str]] = []
        self.options = 0
        self.texts: list[bytes] = []
        self.objc_msgSend = self.PROTOTYPE(self.send_message)

    def objc_getClass(self, name: Any) -> int:
        return self._number(name.value)

    def sel_registerName(self, name: Any) -> int:
        return self._number(name.value)

    def _number(self, name: bytes) -> int:
        if name not in self.names:
            self.names.append(name)
        return 100 + self.names.index(name)

    def _name(self, number: int) -> str:
        return self.names[number - 100].decode() if 100 <= number < 100 + len(self.names) else str(number)

    def send_message(self, receiver: int, selector: int, first: int | None, second: int | None) -> int:
        name = self._name(selector)
        self.sent.append((self._name(receiver), name))
        if name == "stringWithUTF8String:":
            self.texts.append(ctypes.string_at(first or 0))
            return 7
        if name == "processInfo":
            return 8
        if name == "beginActivityWithOptions:reason:":
            self.options = first or 0
            assert second == 7
            return 9
        if name == "endActivity:":
            assert first == 9
        return receiver


def test_the_messages_to_macos_are_the_documented_ones() -> None:
    runtime = Runtime()
    activity = ProcessInfoActivity(runtime)
    token = activity.begin("Draftlight is answering")
    assert token == 9
    assert runtime.texts == [b"Draftlight is answering"]
    assert runtime.options == 0x00FFFFFF
    assert ("9", "retain") in runtime.sent
    activity.end(token)
    assert runtime.sent[-2:] == [("8", "endActivity:"), ("9", "release")]
    assert ("NSProcessInfo", "processInfo") in runtime.sent


class Bundle(Runtime):
    """A runtime whose dictionary accepts values, or does not."""

    def __init__(self, *, accepts: bool) -> None:
        super().__init__()
        self._accepts = accepts

    def send_message(self, receiver: int, selector: int, first: int | None, second: int | None) -> int:
        super().send_message(receiver, selector, first, second)
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


class Calls:
    def __init__(self, *, refuses: bool = False) -> None:
        self.calls: list[object] = []
        self.refuses = refuses

    def begin(self, reason: str) -> None:
        if self.refuses:
            raise OSError("no")
        self.calls.append("begin")

    def end(self, token: None) -> None:
        self.calls.append("end")


@pytest.mark.parametrize("refuses", [False, True])
def test_work_is_done_in_an_activity_with_a_quality_of_service(refuses: bool) -> None:
    system = Calls(refuses=refuses)
    working = Working(system, system.calls.append)
    with pytest.raises(ValueError, match="stop"), working():
        raise ValueError("stop")
    with working():
        pass
    begin, end = ([], []) if refuses else (["begin"], ["end"])
    assert system.calls == [*begin, 0x19, 0x15, *end] * 2


class LibC:
    """`sysctlbyname` with one variable, and the figures of one process."""

    def proc_pid_rusage(self, process: int, flavor: int, figures: Any) -> int:
        if (process, flavor) != (os.getpid(), 0):
            return -1
        held = (ctypes.c_uint64 * 12)(*range(100, 112))
        ctypes.memmove(figures, held, ctypes.sizeof(held))
        return 0

    def sysctlbyname(self, name: bytes, text: Any, size: Any, new: None, length: Any) -> int:
        if name != b"kern.osversion":
            return -1
        text.value = b"25A354"
        ctypes.cast(size, ctypes.POINTER(ctypes.c_size_t)).contents.value = 7
        return 0


def test_a_system_variable() -> None:
    assert sysctl("kern.osversion", LibC()) == "25A354"
    assert sysctl("kern.nothing", LibC()) == ""


def test_the_footprint_follows_the_uuid_and_seven_figures() -> None:
    assert footprint_bytes(LibC()) == 100 + 16 // 8 + 7
