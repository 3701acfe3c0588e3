"""Why an answer stopped, in the words of the Messages API."""

from __future__ import annotations

from collections.abc import Mapping

#: Anthropic's words, and the canonical finish that each stands for.
WORDS: Mapping[str, str] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
_WORD_OF = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}


def stop_word(finish: str, word: str | None, *, is_own: bool) -> str:
    """The stop reason for a canonical finish. The vendor's own word stands where it says the same, and where it is
    Anthropic's (`is_own`) but newer than this table."""
    if word is not None and (WORDS.get(word) == finish or (is_own and word not in WORDS and finish == "stop")):
        return word
    return _WORD_OF.get(finish, "end_turn")
