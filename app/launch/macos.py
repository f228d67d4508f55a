"""macOS: keeps the system awake while the window waits for work, and sets the name in the menu bar."""

from __future__ import annotations

import ctypes

from app.session.turn.link_state import Phase
from core.system.macos import Awake, Objc

_BUSY = frozenset({Phase.LOADING, Phase.READING, Phase.WRITING, Phase.STOPPING})


def follow(awake: Awake, phase: Phase, *, serving: bool = False) -> None:
    """Hold `awake` in a working phase or while the local server answers a request, else release it."""
    if serving or phase in _BUSY:
        awake.hold()
    else:
        awake.release()


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
