"""A spreadsheet that computes: the formulas that a report has, from a sheet's own numbers.

Written apart from what writes them: a grammar of cells, arithmetic and the functions SUM, SUMIF, ROUND, IF and N, with
a spreadsheet's own rules: an empty cell is nought, a text in arithmetic is an error, SUM leaves texts out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

from openpyxl.worksheet.worksheet import Worksheet

_TOKEN: Final = re.compile(r"\s*(\d+(?:\.\d+)?|[A-Z]+\d+(?::[A-Z]+\d+)?|[A-Z]+(?=\()|\"[^\"]*\"|<>|[-+*/=(),])")

Value = float | str | None


class Sheet:
    """`value("D5")` is what the spreadsheet would show there."""

    def __init__(self, sheet: Worksheet) -> None:
        self._sheet = sheet

    def value(self, cell: str) -> Value:
        found: Any = self._sheet[cell].value
        if self._sheet[cell].data_type != "f":
            return found  # type: ignore[no-any-return]
        return _Formula(self, found.removeprefix("=")).value()

    def span(self, cells: str) -> Iterator[Value]:
        for row in self._sheet[cells]:
            for cell in row:
                yield self.value(cell.coordinate)


class _Formula:
    def __init__(self, sheet: Sheet, text: str) -> None:
        self._sheet = sheet
        self._tokens: list[str] = []
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            assert found is not None, f"{text!r} at {at}"
            self._tokens.append(found[1])
            at = found.end()

    def value(self) -> Value:
        value = self._equal()
        assert not self._tokens, f"left over: {self._tokens}"
        return value

    def _next(self, *wanted: str) -> bool:
        if self._tokens and self._tokens[0] in wanted:
            self._tokens.pop(0)
            return True
        return False

    def _equal(self) -> Value:
        left = self._sum()
        if self._next("="):
            right = self._sum()
            return float((left or 0) == (right or 0)) if not isinstance(left, str) else float(left == right)
        return left

    def _sum(self) -> Value:
        value = self._product()
        while self._tokens and self._tokens[0] in "+-":
            sign = 1 if self._tokens.pop(0) == "+" else -1
            value = _number(value) + sign * _number(self._product())
        return value

    def _product(self) -> Value:
        value = self._atom()
        while self._tokens and self._tokens[0] in "*/":
            if self._tokens.pop(0) == "*":
                value = _number(value) * _number(self._atom())
            else:
                value = _number(value) / _number(self._atom())
        return value

    def _atom(self) -> Value:
        token = self._tokens.pop(0)
        if self._tokens and self._tokens[0] == "(":
            return self._call(token)
        if token.startswith('"'):
            return token.strip('"')
        return float(token) if token[0].isdigit() else self._sheet.value(token)

    def _call(self, name: str) -> Value:
        assert self._next("(")
        if name in ("SUM", "SUMIF"):
            return self._over_cells(name)
        if name == "IF":
            return self._choice()
        value = self._equal()
        if name == "N":
            assert self._next(")")
            return 0.0 if isinstance(value, str) or value is None else value
        assert name == "ROUND" and self._next(","), name
        digits = int(self._tokens.pop(0))
        assert self._next(")")
        return float(Decimal(_number(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))

    def _over_cells(self, name: str) -> float:
        values = list(self._sheet.span(self._tokens.pop(0)))
        if name == "SUMIF":
            assert self._next(",")
            wanted = self._equal()
            assert self._next(",")
            chosen = list(self._sheet.span(self._tokens.pop(0)))
            values = [value for key, value in zip(values, chosen, strict=True) if key == wanted]
        assert self._next(")")
        return sum(float(value) for value in values if isinstance(value, int | float))

    def _choice(self) -> Value:
        """Only one branch is computed: the other may divide by nought."""
        condition = self._equal()
        assert self._next(",")
        depth, split, end = 0, -1, -1
        for place, token in enumerate(self._tokens):
            depth += (token == "(") - (token == ")")
            if token == "," and not depth and split < 0:
                split = place
            if depth < 0:
                end = place
                break
        branches = self._tokens[:split], self._tokens[split + 1 : end]
        rest = self._tokens[end + 1 :]
        self._tokens = branches[0] if condition else branches[1]
        value = self.value()
        self._tokens = rest
        return value


def _number(value: Value) -> float:
    if value is None:
        return 0.0
    assert not isinstance(value, str), f"#VALUE!: {value!r} in arithmetic"
    return float(value)
