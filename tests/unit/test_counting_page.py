"""docs/counting.md: its examples are counted as it says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from proxy.metering.images import LOW_TOKENS, image_tokens
from proxy.metering.meter import INLINE_CHARS, INLINE_WIDE_CHARS
from proxy.metering.prompt import (
    ANSWER_TOKENS,
    CALL_TOKENS,
    FORMULA,
    MESSAGE_TOKENS,
    TOOL_TOKENS,
    count_prompt,
    read_prompt,
)
from proxy.metering.tokens import load_counter

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "counting.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```json example\n(.*?)\n```\n\nis (.*?): \*\*(\d+)\*\*", PAGE, re.DOTALL)


@pytest.mark.clause("L2")
@pytest.mark.parametrize(("body", "words", "total"), EXAMPLES)
def test_an_example_counts_as_the_page_says(body: str, words: str, total: str) -> None:
    """The sum, and the tokens of its text."""
    asked = json.loads(body)
    assert count_prompt(load_counter(), asked) == int(total)
    texts = load_counter().count(read_prompt(asked).text)
    assert re.search(rf"\b{texts} tokens", words.replace("\n", " ")), texts


def test_the_page_has_the_numbers_of_the_code() -> None:
    """What a message, a call, a tool and an image come to, the limits of counting at once, and the formula's name."""
    assert len(EXAMPLES) == 3
    rows = dict(re.findall(r"^\| (each \w+|each call|the answer)[^|]*\| (\d+) \|$", PAGE, re.MULTILINE))
    assert rows == {
        "each message": str(MESSAGE_TOKENS),
        "the answer": str(ANSWER_TOKENS),
        "each call": str(CALL_TOKENS),
        "each definition": str(TOOL_TOKENS),
    }
    assert f"`{FORMULA}`" in PAGE
    assert f"counts {LOW_TOKENS} with the detail" in PAGE
    assert f"{image_tokens('https://example.test/')}: **777**" in PAGE
    assert f"{INLINE_CHARS:,} characters of ASCII, {INLINE_WIDE_CHARS:,} of anything else" in PAGE
