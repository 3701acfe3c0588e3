"""What a program would change in a file, for a person to see before it does (contracts R3, C3).

In: a file's name and its text before and after. Out: a unified diff, as text and, on a terminal, in colours. Never: a
control character as it stands, since the words of a vendor are in it.
"""

from __future__ import annotations

import difflib
from typing import Final

from rich.console import Console
from rich.text import Text

_STYLES: Final = (("---", "bold"), ("+++", "bold"), ("@@", "cyan"), ("+", "green"), ("-", "red"))
_CONTEXT: Final = 3


def diff_of(file: str, before: str, after: str) -> str:
    """Empty if nothing changes. Line ends are not shown; a change of nothing but them is told in words."""
    if before == after:
        return ""
    lines = list(difflib.unified_diff(_lines(before), _lines(after), file, file, n=_CONTEXT, lineterm=""))
    return "\n".join([*lines, ""]) if lines else f"{file}: only line ends change\n"


def print_diff(console: Console, diff: str) -> None:
    """In colours where `console` has any; never broken into lines anew."""
    for line in diff.split("\n")[:-1]:
        style = next((style for begins, style in _STYLES if line.startswith(begins)), "")
        console.print(Text(line, style), soft_wrap=True)


def _lines(text: str) -> list[str]:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n")
    return [visible(line) for line in lines]


def visible(line: str) -> str:
    """A line whose control characters are shown, for they may be a vendor's."""
    # Joiners are no print either, and the letters of many scripts need them.
    return "".join(
        letter if letter.isprintable() or letter in "\t\u200c\u200d" else f"\\u{ord(letter):04x}" for letter in line
    )
