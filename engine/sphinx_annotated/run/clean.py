"""Text that a program printed, as a page can show it."""

from __future__ import annotations

import re
from typing import Any

COLOURS = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]+[0-~]|.)",
    re.DOTALL,
)
# The earlier states of a progress bar.
OVERWRITTEN = re.compile(r"^.*\r(?=[^\n])", re.MULTILINE)
ERASED = re.compile(r"[^\n\x08]\x08")
# Control characters except tab and line feed.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def cleaned(value: Any) -> Any:
    """Return text, or the texts in lists and dictionaries, without what controls a terminal."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return [cleaned(each) for each in value]
    if isinstance(value, dict):
        return {name: cleaned(each) for name, each in value.items()}
    return value


def _text(text: str) -> str:
    text = COLOURS.sub("", text).replace("\r\n", "\n")
    text = OVERWRITTEN.sub("", text)
    while ERASED.search(text):
        text = ERASED.sub("", text)
    return CONTROL.sub("", text).encode("utf-8", "replace").decode()
