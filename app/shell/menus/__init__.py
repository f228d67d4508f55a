"""Everything that can be done by menu or key: declared once, bound to the window, shown in its menu bar."""
