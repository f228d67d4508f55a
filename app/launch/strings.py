"""Texts of the start-up checks, of the doctor, and of the activity that keeps the system awake."""

from __future__ import annotations

from collections.abc import Sequence

ANSWERING = "Draftlight is answering"
NOT_HEARD = "Draftlight is already running, but it does not answer."


def not_heard_hint(lock: str) -> str:
    return f"Look for its window, or end its process and start again. If it is not running, delete {lock}."


def already_running(program: str) -> str:
    place = f" (from {program})" if program else ""
    return (
        f"Draftlight is already running{place}; its window comes to the front.\n"
        "Quit it first to start another copy, or set DRAFTLIGHT_HOME to use another data folder."
    )


NO_DISPLAY = (
    "Draftlight needs a display, and neither DISPLAY nor WAYLAND_DISPLAY is set.\n"
    "Start it from a desktop session, or without a window: QT_QPA_PLATFORM=offscreen draftlight --smoke"
)


def display_does_not_answer(shown: str) -> str:
    return (
        f"Draftlight cannot open a window: the display server does not answer or refuses access ({shown}).\n"
        "Start it from a desktop session, or without a window: QT_QPA_PLATFORM=offscreen draftlight --smoke"
    )


def unknown_platform(chosen: str, known: Sequence[str]) -> str:
    return (
        f"Draftlight cannot open a window: QT_QPA_PLATFORM is “{chosen}”, and Qt has no such platform.\n"
        f"Unset it, or choose one of: {', '.join(known)}"
    )


def no_model_in_time(seconds: float) -> str:
    return f"The model was not ready within {seconds:.0f} s."


def no_answer_in_time(seconds: float) -> str:
    return f"The answer was not finished within {seconds:.0f} s."


def missing_origins(origins: str) -> str:
    return f"No token of these origins arrived: {origins}."


TEXT_DIFFERS = "The text in the window is not the text of the tokens."
WORKER_FAILED = "The worker failed"


def not_saved(path: str) -> str:
    return f"The picture could not be saved to {path}."


DOCTOR_DISPLAY = "Window"
DOCTOR_FONTS = "Fonts"
DOCTOR_NO_DISPLAY = "No display here; looked at off-screen."
DOCTOR_NO_FONTS = "No other font is installed, so no text can be shown."
DOCTOR_FONTS_HINT = "Install Draftlight again to restore its fonts."
DOCTOR_COVERAGE = "Characters"
DOCTOR_NO_SCREEN = "no screen"


def doctor_display(qt: str, bindings: str, platform: str, screen: str) -> str:
    return f"Qt {qt} (PySide6 {bindings}) on {platform}, {screen}"


def doctor_screen(width_px: int, height_px: int, ratio: float) -> str:
    return f"{width_px} × {height_px} at {ratio:g} pixels a point"


def doctor_fonts(text: str, code: str) -> str:
    return f"{text} for text, {code} for code"


def doctor_fonts_not_loaded(files: str, folder: str) -> str:
    return f"Cannot load {files} from {folder}."


def doctor_no_font_for(names: str) -> str:
    return f"No installed font has {names}. They are shown as boxes."


def doctor_install_fonts(packages: str) -> str:
    return f"On Debian or Ubuntu: sudo apt-get install {packages}"
