"""Check, before Qt is imported, that a window can be opened; Qt itself would abort the process.

On Linux three things can be wrong: no display is set, a system library is missing, or the display server does
not answer. The X11 and Wayland client libraries try the connection, as Qt would. Nothing here imports Qt.
"""

from __future__ import annotations

import ctypes
import os
import queue
import threading
from collections.abc import Callable, Mapping, MutableMapping

from app.launch.libraries import missing_libraries, missing_message, platform_names

NO_DISPLAY = (
    "Draftlight needs a display, and neither DISPLAY nor WAYLAND_DISPLAY is set.\n"
    "Start it from a desktop session, or without a window: QT_QPA_PLATFORM=offscreen draftlight --smoke"
)


NO_ANSWER = (
    "Draftlight cannot open a window: the display server does not answer or refuses access ({shown}).\n"
    "Start it from a desktop session, or without a window: QT_QPA_PLATFORM=offscreen draftlight --smoke"
)
NO_PLATFORM = (
    "Draftlight cannot open a window: QT_QPA_PLATFORM is “{chosen}”, and Qt has no such platform.\n"
    "Unset it, or choose one of: {known}"
)
# Qt would wait forever for a server that accepts the connection and never replies.
PATIENCE_S = 5.0
_VARIABLES = {"wayland": "WAYLAND_DISPLAY", "xcb": "DISPLAY"}

Probe = Callable[[str], bool]


def has_display(environment: Mapping[str, str]) -> bool:
    """Whether a display or a Qt platform is set."""
    return any(environment.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))


def go_offscreen_without_display(environment: MutableMapping[str, str], platform: str) -> None:
    """Select Qt's offscreen platform in `environment` if no display is set. For runs without a user."""
    if platform.startswith("linux") and not has_display(environment):
        environment["QT_QPA_PLATFORM"] = "offscreen"


def use_utf8_locale(environment: MutableMapping[str, str]) -> None:
    """Replace LC_ALL=C by C.UTF-8 in `environment`, as Qt would, which also prints four lines about it.

    Without LC_ALL Python has done so already (PEP 538).
    """
    if environment.get("LC_ALL") in ("C", "POSIX"):
        environment["LC_ALL"] = "C.UTF-8"


def display_problem(
    environment: MutableMapping[str, str],
    platform: str,
    lacks: Callable[[list[str]], list[str]] = missing_libraries,
    answers: Probe | None = None,
) -> str:
    """Why no window can be opened, and what to do about it; empty if one can.

    If only one of two displays works, `environment` then selects its Qt platform; its locale is made UTF-8
    (see `use_utf8_locale`). `lacks` returns the missing libraries of Qt's platforms, and `answers`
    whether the display server of "xcb" or "wayland" answers.
    """
    if not platform.startswith("linux"):
        return ""
    use_utf8_locale(environment)
    if not has_display(environment):
        return NO_DISPLAY
    chosen = environment.get("QT_QPA_PLATFORM", "")
    # Qt tries a list in order; "offscreen:size=…" has parameters.
    candidates = (
        [name.partition(":")[0] for name in chosen.split(";")] if chosen else _by_display(environment)
    )
    known = platform_names()
    unknown = [name for name in candidates if known and name.partition("-")[0] not in known]
    if unknown and len(unknown) == len(candidates):
        return NO_PLATFORM.format(chosen=chosen, known=", ".join(known))
    missing = {name: lacks([name]) for name in candidates}
    usable = [name for name in candidates if name not in unknown and not missing[name]]
    working = [name for name in usable if (answers or answers_connection)(name)]
    if not working:
        problems = [missing_message(sorted({library for names in missing.values() for library in names}))]
        problems += [NO_ANSWER.format(shown=_shown(usable, environment))] if usable else []
        return "\n".join(filter(None, problems))
    if working != candidates and not chosen:
        environment["QT_QPA_PLATFORM"] = ";".join(working)
    return ""


def answers_connection(platform: str) -> bool:
    """Whether the display server of the Qt platform `platform` accepts a client; True for other platforms."""
    connect = {"xcb": _connects_x11, "wayland": _connects_wayland}.get(platform.partition("-")[0])
    if connect is None:
        return True
    answer: queue.SimpleQueue[bool] = queue.SimpleQueue()
    threading.Thread(target=lambda: answer.put(connect()), name="display-probe", daemon=True).start()
    try:
        return answer.get(timeout=PATIENCE_S)
    except queue.Empty:
        return False


def _connects_x11() -> bool:
    xcb = ctypes.CDLL("libxcb.so.1")
    xcb.xcb_connect.restype = ctypes.c_void_p
    xcb.xcb_connect.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    xcb.xcb_connection_has_error.argtypes = xcb.xcb_disconnect.argtypes = [ctypes.c_void_p]
    connection = xcb.xcb_connect(None, None)
    failed = bool(xcb.xcb_connection_has_error(connection))
    xcb.xcb_disconnect(connection)
    return not failed


def _connects_wayland() -> bool:
    if not os.environ.get("WAYLAND_DISPLAY", "").startswith("/") and not os.environ.get("XDG_RUNTIME_DIR"):
        return False  # the library would print its own message
    wayland = ctypes.CDLL("libwayland-client.so.0")
    wayland.wl_display_connect.restype = ctypes.c_void_p
    wayland.wl_display_connect.argtypes = [ctypes.c_char_p]
    wayland.wl_display_roundtrip.argtypes = wayland.wl_display_disconnect.argtypes = [ctypes.c_void_p]
    display = wayland.wl_display_connect(None)
    if not display:
        return False
    failed = wayland.wl_display_roundtrip(display) < 0
    wayland.wl_display_disconnect(display)
    return not failed


def _by_display(environment: Mapping[str, str]) -> list[str]:
    """Qt platforms of the displays that are set, Wayland first."""
    return [platform for platform, variable in _VARIABLES.items() if environment.get(variable)]


def _shown(platforms: list[str], environment: Mapping[str, str]) -> str:
    names = [_VARIABLES.get(name.partition("-")[0]) for name in platforms]
    return " and ".join(f"{name}={environment.get(name) or '(not set)'}" for name in names if name)
