"""Texts about the images of chats."""

from __future__ import annotations


def load(model: str) -> str:
    return f"Load {model}"


def download(model: str, size: str) -> str:
    return f"Download {model} ({size})"


def downloading(model: str, percent: int) -> str:
    return f"{model} is being downloaded: {percent}%."


def left_out(model: str, count: int) -> str:
    images = "The image of this chat is" if count == 1 else f"The {count:,} images of this chat are"
    return f"{images} left out of new answers, because {model} cannot see images."
