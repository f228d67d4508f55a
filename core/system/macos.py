"""macOS: activities against App Nap and sleep, a thread's quality of service, the build of the system.

macOS slows down processes in the background (App Nap, and efficiency cores for a low quality of service: an
eighth of the speed) and sleeps while idle, even during a long prefill. Window and engine each hold one
activity while they work. If the system refuses, the failure is logged once and the work continues.
"""

from __future__ import annotations

import ctypes
import logging
import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Protocol

_LOG = logging.getLogger("draftlight.system")
# NSActivityUserInitiated: no App Nap, no sleep while idle, no sudden termination. The lid still
# puts the machine to sleep.
_USER_INITIATED = 0x00FFFFFF


class Activity(Protocol):
    """The system's interface. A token identifies an activity."""

    def begin(self, reason: str) -> Any:
        """Start an activity; returns its token."""

    def end(self, token: Any) -> None:
        """End the activity of `token`."""


class Awake:
    """Holds at most one activity; none without an interface, as on systems that do not slow down apps."""

    def __init__(self, activity: Activity | None, reason: str) -> None:
        self._activity = activity
        self._reason = reason
        self._token: Any = None
        self._held = False

    @property
    def held(self) -> bool:
        """Whether the system is being kept awake."""
        return self._held

    def hold(self) -> None:
        """Start the activity if none is held."""
        if self._held or self._activity is None:
            return
        try:
            self._token = self._activity.begin(self._reason)
        except Exception:
            self._activity = None
            _LOG.warning("The system cannot be kept awake during answers.", exc_info=True)
            return
        self._held = True

    def release(self) -> None:
        """End the activity if one is held."""
        if not self._held or self._activity is None:
            return
        token, self._token, self._held = self._token, None, False
        try:
            self._activity.end(token)
        except Exception:
            _LOG.warning("The activity could not be ended after the answer.", exc_info=True)


class ProcessInfoActivity:
    """NSProcessInfo's activities. Main thread only. `runtime` is libobjc (tests pass a recorder)."""

    def __init__(self, runtime: Any = None) -> None:
        self._objc = Objc(runtime)

    def begin(self, reason: str) -> int:
        """Begin an activity; returns its token, retained because it outlives the autorelease pool."""
        text = self._objc.string(reason)
        token = self._objc.send(
            self._process_info(),
            "beginActivityWithOptions:reason:",
            ctypes.c_uint64(_USER_INITIATED),
            ctypes.c_void_p(text),
        )
        if not token:
            raise OSError("NSProcessInfo began no activity.")
        return self._objc.send(token, "retain")

    def end(self, token: int) -> None:
        """End the activity of `token` and release it."""
        self._objc.send(self._process_info(), "endActivity:", ctypes.c_void_p(token))
        self._objc.send(token, "release")

    def _process_info(self) -> int:
        return self._objc.send(self._objc.get_class("NSProcessInfo"), "processInfo")


# <sys/qos.h>
_QOS_USER_INITIATED, _QOS_DEFAULT = 0x19, 0x15


def set_thread_qos(quality: int) -> None:
    """Set the calling thread's quality of service. Ignored where unsupported."""
    if sys.platform == "darwin":
        ctypes.CDLL(None).pthread_set_qos_class_self_np(ctypes.c_uint(quality), ctypes.c_int(0))


class Working:
    """Context manager of the engine's work: one activity, and a thread that macOS runs on fast cores."""

    def __init__(
        self, activity: Activity | None = None, set_qos: Callable[[int], None] = set_thread_qos
    ) -> None:
        self._awake = Awake(activity or system_activity(), "Draftlight is computing")
        self._set_qos = set_qos

    @contextmanager
    def __call__(self) -> Iterator[None]:
        self._awake.hold()
        self._set_qos(_QOS_USER_INITIATED)
        try:
            yield
        finally:
            self._set_qos(_QOS_DEFAULT)
            self._awake.release()


def sysctl(name: str, libc: Any = None) -> str:
    """The text of a system variable; empty where there is none. `libc`: tests pass a recorder."""
    if libc is None:
        if platform.system() != "Darwin":  # mypy finds the code behind sys.platform unreachable
            return ""
        libc = ctypes.CDLL(None)
    size = ctypes.c_size_t(256)
    text = ctypes.create_string_buffer(size.value)
    failed = libc.sysctlbyname(name.encode("ascii"), text, ctypes.byref(size), None, ctypes.c_size_t(0))
    return "" if failed else text.value.decode("utf-8", "replace")


def footprint_bytes(libc: Any = None) -> int:
    """Memory of this process as Activity Monitor has it, Metal's included; 0 if unknown. `libc` as above."""
    if libc is None:
        if platform.system() != "Darwin":
            return 0
        libc = ctypes.CDLL(None)
    usage = (ctypes.c_uint64 * 12)()  # rusage_info_v0, in which ri_phys_footprint is the tenth
    failed = libc.proc_pid_rusage(os.getpid(), 0, ctypes.byref(usage))
    return 0 if failed else usage[9]


@cache
def system_build() -> str:
    """The build of macOS, such as 25A354, which changes with each update of Metal; empty elsewhere."""
    return sysctl("kern.osversion")


def system_activity() -> Activity | None:
    """Returns the system's interface; None if it has none."""
    return ProcessInfoActivity() if sys.platform == "darwin" else None


class Objc:
    """`runtime` is libobjc, opened by ctypes (tests pass a recorder)."""

    def __init__(self, runtime: Any = None) -> None:
        self._objc = runtime or _libobjc()

    def get_class(self, name: str) -> int:
        """The class `name`. Raises OSError if it does not exist."""
        found = self._objc.objc_getClass(ctypes.c_char_p(name.encode("ascii")))
        if not found:
            raise OSError(f"The Objective-C class {name} does not exist.")
        return int(found)

    def string(self, text: str) -> int:
        """An autoreleased NSString."""
        return self.send(self.get_class("NSString"), "stringWithUTF8String:", ctypes.c_char_p(text.encode()))

    def responds(self, receiver: int, selector: str) -> bool:
        """Whether `receiver` has a method `selector`."""
        # BOOL is one byte; the other bits of the register are undefined.
        name = self._objc.sel_registerName(ctypes.c_char_p(selector.encode("ascii")))
        return bool(self.send(receiver, "respondsToSelector:", ctypes.c_void_p(name)) & 0xFF)

    def send(self, receiver: int, selector: str, *arguments: Any) -> int:
        """Send one message. `objc_msgSend` has the called method's signature, so it is cast each time."""
        name = self._objc.sel_registerName(ctypes.c_char_p(selector.encode("ascii")))
        kinds = [type(argument) for argument in arguments]
        prototype = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, *kinds)
        method = ctypes.cast(self._objc.objc_msgSend, prototype)
        return int(method(receiver, name, *arguments) or 0)


def _libobjc() -> Any:
    runtime = ctypes.CDLL("/usr/lib/libobjc.dylib")
    runtime.objc_getClass.restype = ctypes.c_void_p
    runtime.sel_registerName.restype = ctypes.c_void_p
    # NSProcessInfo, NSBundle and NSString are in Foundation, which Qt loads, too.
    ctypes.CDLL("/System/Library/Frameworks/Foundation.framework/Foundation")
    return runtime
