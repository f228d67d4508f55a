"""Messages to Objective-C objects through libobjc, for the few things that Qt has no API for on macOS.

Main thread only. An Objective-C exception ends the process: use `responds()` where a method may be missing.
"""

from __future__ import annotations

import ctypes
from typing import Any


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
