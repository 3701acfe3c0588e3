"""Texts as a spreadsheet takes them: names of sheets, and what stands in a cell (contract L4).

In: any text. Out: one that the file format allows. What it cannot hold is replaced or cut, and the cut is to be seen.
"""

from __future__ import annotations

import re
from typing import Final

_FORBIDDEN: Final = re.compile(r"[\[\]:*?/\\'\x00-\x1f\x7f]")
#: Both limits are in units of UTF-16, in which an emoji is two.
_NAME_LENGTH, _CELL_LENGTH = 31, 32_767
_RESERVED: Final = "history"
#: No characters at all in XML; and the controls, but for the tab and the line feed that a cell may have.
_NO_XML: Final = re.compile("[\ud800-\udfff\ufffe\uffff]")
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f]")


class SheetNames:
    """Those of one workbook: no two are alike but for capitals."""

    def __init__(self) -> None:
        self._taken = {_RESERVED}

    def free(self, title: str) -> str:
        """A name that is still free, as near to the title as can be; taken from now on."""
        plain = cut(_NO_XML.sub("�", _FORBIDDEN.sub(" ", title)), _NAME_LENGTH).strip() or "Sheet"
        name, number = plain, 1
        while name.casefold() in self._taken:
            number += 1
            mark = f" ({number})"
            name = f"{cut(plain, _NAME_LENGTH - len(mark)).rstrip()}{mark}"
        self._taken.add(name.casefold())
        return name


def cell_text(text: str) -> str:
    """A text for a cell; a control stands there as its picture."""
    shown = _CONTROL.sub(lambda found: chr(0x2400 + ord(found[0])), text)
    return cut(_NO_XML.sub("�", shown), _CELL_LENGTH)


def cut(text: str, units: int) -> str:
    """At most so many units of UTF-16, with an ellipsis where something is left out."""
    if len(text) <= units // 2 or _units(text) <= units:
        return text
    kept = text[:units]
    while _units(kept) > units - 1:
        kept = kept[:-1]
    return f"{kept}…"


def _units(text: str) -> int:
    return len(text) + sum(letter > "\uffff" for letter in text)
