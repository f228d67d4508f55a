"""The bundle's entry: what the packager's small executable runs in place of a Python command."""
