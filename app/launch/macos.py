"""macOS: prevents App Nap and sleep while the model works, and sets the name in the menu bar.

macOS slows down apps in the background (App Nap) and sleeps while idle, even during a long prefill. One
activity is held while a model loads and during an answer: `Awake.follow()` receives each phase. If the system
refuses, the failure is logged once and the answer continues. On other systems `NoActivity` does nothing.
"""

from __future__ import annotations

import ctypes
import logging
import sys
from typing import Any, Protocol

from app.session.turn.link_state import Phase

_LOG = logging.getLogger("draftlight.window")
_BUSY = frozenset({Phase.LOADING, Phase.WAITING, Phase.READING, Phase.WRITING, Phase.STOPPING})
# NSActivityUserInitiated: no App Nap, no sleep while idle, no sudden termination. The lid still
# puts the machine to sleep.
_USER_INITIATED = 0x00FFFFFF


class Activity(Protocol):
    """The system's interface. A token identifies an activity."""

    def begin(self, reason: str) -> Any:
        """Start an activity; returns its token."""

    def end(self, token: Any) -> None:
        """End the activity of `token`."""


class NoActivity:
    """For systems that do not slow down apps."""

    def begin(self, reason: str) -> None:
        """Does nothing."""

    def end(self, token: None) -> None:
        """Does nothing."""


class Awake:
    """Holds at most one activity."""

    def __init__(self, activity: Activity, reason: str) -> None:
        self._activity = activity
        self._reason = reason
        self._token: Any = None
        self._held = False
        self._refused = False

    @property
    def held(self) -> bool:
        """Whether the system is being kept awake."""
        return self._held

    def follow(self, phase: Phase, *, serving: bool = False) -> None:
        """Hold an activity in a working phase or while the local server answers a request, else
        release it.
        """
        if serving or phase in _BUSY:
            self.hold()
        else:
            self.release()

    def hold(self) -> None:
        """Start the activity if none is held."""
        if self._held or self._refused:
            return
        try:
            self._token = self._activity.begin(self._reason)
        except Exception:
            self._refused = True
            _LOG.warning("The system cannot be kept awake during answers.", exc_info=True)
            return
        self._held = True

    def release(self) -> None:
        """End the activity if one is held."""
        if not self._held:
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


def system_activity() -> Activity:
    """Returns the system's interface."""
    return ProcessInfoActivity() if sys.platform == "darwin" else NoActivity()


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
        argument = ctypes.c_char_p(text.encode("utf-8"))
        return self.send(self.get_class("NSString"), "stringWithUTF8String:", argument)

    def responds(self, receiver: int, selector: str) -> bool:
        """Whether `receiver` has a method `selector`."""
        # BOOL is one byte; the rest of the register is undefined.
        name = self._objc.sel_registerName(ctypes.c_char_p(selector.encode("ascii")))
        return bool(self.send(receiver, "respondsToSelector:", ctypes.c_void_p(name)) & 0xFF)

    def send(self, receiver: int, selector: str, *arguments: Any) -> int:
        """Send one message. `objc_msgSend` has the called method's signature, so it is cast each time."""
        name = self._objc.sel_registerName(ctypes.c_char_p(selector.encode("ascii")))
        kinds = [type(argument) for argument in arguments]
        prototype = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, *kinds)
        method = ctypes.cast(self._objc.objc_msgSend, prototype)
        return int(method(receiver, name, *arguments) or 0)


def set_bundle_name(name: str, objc: Objc) -> None:
    """Show `name` in the menu bar of a process that is not in an app bundle, instead of "Python".

    Takes effect if it is called before the application object is created.
    """
    bundle = objc.send(objc.get_class("NSBundle"), "mainBundle")
    # Documented as immutable and in fact mutable; checked, as an exception could not be caught.
    info = objc.send(bundle, "infoDictionary") if bundle else 0
    if info and objc.responds(info, "setObject:forKey:"):
        value, key = objc.string(name), objc.string("CFBundleName")
        objc.send(info, "setObject:forKey:", ctypes.c_void_p(value), ctypes.c_void_p(key))


def _libobjc() -> Any:
    runtime = ctypes.CDLL("/usr/lib/libobjc.dylib")
    runtime.objc_getClass.restype = ctypes.c_void_p
    runtime.sel_registerName.restype = ctypes.c_void_p
    # NSProcessInfo, NSBundle and NSString are in Foundation, which Qt loads, too.
    ctypes.CDLL("/System/Library/Frameworks/Foundation.framework/Foundation")
    return runtime
