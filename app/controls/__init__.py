"""Controls: buttons, switches, sliders, fields and tables, painted to the visual design.

Every control has a visible focus, works with the keyboard, and gets its accessible name from the code that
places it. `set_value` and a person's change both emit `value_changed`, once, if the value differs.
"""

from app.controls.buttons.button import Button
from app.controls.buttons.icon_button import IconButton
from app.controls.buttons.segment import Segment
from app.controls.buttons.switch import CheckBox, Switch
from app.controls.focus_ring import FocusRing
from app.controls.popup import Popup
from app.controls.scroll_bar import OverlayScrollBar, ScrollBar
from app.controls.slider import Slider
from app.controls.spin import Spin
from app.controls.text_area import TextArea
from app.controls.text_label import TextLabel

__all__ = [
    "Button",
    "CheckBox",
    "FocusRing",
    "IconButton",
    "OverlayScrollBar",
    "Popup",
    "ScrollBar",
    "Segment",
    "Slider",
    "Spin",
    "Switch",
    "TextArea",
    "TextLabel",
]
