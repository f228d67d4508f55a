"""Mach-O files and their signatures, read and made without Apple's tools."""
