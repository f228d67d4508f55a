"""Controls: buttons, switches, sliders, fields and tables, painted to the visual design.

Every control has a visible focus, works with the keyboard, and gets its accessible name from the code that
places it. `set_value` and a person's change both emit `value_changed`, once, if the value differs.
"""
