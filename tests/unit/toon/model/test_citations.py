"""Citations in the text of ids, and patterns that somebody made to do harm."""

from __future__ import annotations

import subprocess
import time

import pytest

from proxy.toon.model import citations as module
from proxy.toon.model.citations import BadPattern, citations


def test_ids_that_a_pattern_covers_in_part_are_citations() -> None:
    texts = ["see [", "2019", "] UK", "SC 4", "1 and", " more"]
    assert citations(r"\[\d{4}\] UKSC \d+", texts) == (0, 1, 2, 3, 4)
    assert citations(r"\d{4}", texts) == (1,)


def test_texts_in_many_scripts_are_covered_too() -> None:
    texts = ["依据", "第", "十二", "条", "，", "طبق ", "ماده ", "۱۲", " 🙂"]
    assert citations(r"第[一二三四五六七八九十]+条|ماده [۰-۹]+", texts) == (1, 2, 3, 6, 7)


def test_an_id_without_text_goes_with_the_id_that_ends_its_character() -> None:
    assert citations("第", ["a", "", "", "第", "", "b"]) == (1, 2, 3)


def test_adjoining_and_empty_matches_name_no_id_twice() -> None:
    assert citations("a|b|c*", ["ab", "x", "ba"]) == (0, 2)
    assert citations("z*", ["ab"]) == ()


@pytest.mark.parametrize("pattern", ["[", "(?P<x>a)(?P<x>", r"\N{NO SUCH LETTER}", "(?R)", "(?:a(?1))(b)", "*"])
def test_what_is_no_pattern_or_calls_itself_is_not_taken(pattern: str) -> None:
    with pytest.raises(BadPattern):
        citations(pattern, ["a"])


@pytest.mark.parametrize(
    "pattern", [r"(?i)\[?\d{4}\]? (?:\p{Lu}\.? ?){1,12}\d{1,5}(?:, \d+)*", "\\p{L}" * 50, "(?:ab){1000}"]
)
def test_a_pattern_of_any_use_is_compiled(pattern: str) -> None:
    assert citations(pattern, ["nothing"]) == ()


@pytest.mark.parametrize(
    "pattern",
    ["(?:(?:(?:ab){1000}){1000}){1000}", "(?:(?:ab){1000}){1000}", "(?:" * 60 + "a" + "+)" * 60, "(?<=a{1000000})b"],
)
def test_a_pattern_that_would_fill_the_memory_is_not_compiled_here(pattern: str) -> None:
    with pytest.raises(BadPattern, match="memory"):
        citations(pattern, ["ab"])


def test_a_pattern_that_takes_all_time_is_given_up() -> None:
    started = time.perf_counter()
    with pytest.raises(BadPattern, match="longer than"):
        citations(r"(?:a|aa)+$", ["a" * 4000, "b"])
    assert time.perf_counter() - started < 10  # by itself it would be the age of the universe


def test_a_pattern_whose_check_is_late_is_not_taken_now_and_may_be_later(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(module, "_COMPILE_S", 0.0001)
        with pytest.raises(BadPattern, match="longer than"):
            citations("b+", ["b"])
    assert citations("b+", ["b"]) == (0,)


def test_a_pattern_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert citations("c+", ["c"]) == (0,)
    monkeypatch.setattr(subprocess, "run", None)
    assert citations("c+", ["b", "c"]) == (1,)
