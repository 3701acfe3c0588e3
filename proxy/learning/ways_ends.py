"""How a vendor ends an answer: its end mark, what stands behind the finish and the mark, and its finish words.

In: exchanges and the profile. Out: an `EndWay` and a `FinishWord` for each word. A word after which the same choice
says more was said before the end: it proves nothing (facts of vendors, 0.5 to 0.7). For a word that the profile does
not know, what was asked tells what it may mean. Never: takes silence for proof.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from proxy.canon.chunk import Chunk, EndMark, ErrorSeen, Heartbeat
from proxy.dialects.payload import as_mapping, as_text, is_empty
from proxy.learning.ways_counts import counted_output
from proxy.learning.ways_exchange import Event, Exchange
from proxy.learning.ways_usage import reports_of
from proxy.learning.ways_values import MIXED, EndWay, FinishWord, Seen
from proxy.semantics.rule import VendorProfile

#: How a request says how long the answer may be, in all families; compared without case and underscores.
_LIMITS: Final = frozenset(
    ("maxtokens", "maxcompletiontokens", "maxoutputtokens", "numpredict", "maxnewtokens", "tokenstogenerate")
)
_MAX_DEPTH: Final = 4
#: By our own count an answer has reached its limit from here on: tokenizers differ by as much.
_NEAR: Final = 0.6
#: So many bare ends show what a word for them is.
_ENDS: Final = 2


def end_of(exchanges: Sequence[Exchange]) -> EndWay:
    """Of all streams."""
    end = EndWay()
    after_finish: dict[str, Seen] = {}
    after_mark: dict[str, Seen] = {}
    marked = 0
    for exchange in exchanges:
        if not exchange.is_stream:
            continue
        mark = exchange.mark_at
        if exchange.is_answer:
            end = replace(end, whole=end.whole + 1)
            marked += mark is not None
        if mark is not None:
            end = _marked(end, exchange, mark)
        for kinds, found in ((after_finish, _behind_finish(exchange)), (after_mark, _behind(exchange, mark))):
            for kind, number in found:
                kinds[kind] = kinds.get(kind, Seen()).plus(exchange.place("event", number))
    if end.whole:
        end = replace(end, mark="sent" if marked == end.whole else "never" if not marked else MIXED)
    return replace(end, after_finish=tuple(after_finish.items()), after_mark=tuple(after_mark.items()))


def _marked(end: EndWay, exchange: Exchange, mark: int) -> EndWay:
    event = exchange.events[mark - 1]
    place = exchange.place("event", mark)
    word = event.data.decode("utf-8", "replace").strip()
    if not isinstance(event.parsed, EndMark) or len(word) > len("[DONE]") + 2:
        word = as_text(as_mapping(event.payload).get("type")) or event.name or "[DONE]"
    end = replace(end, word=end.word or word)
    if exchange.error_at is not None and exchange.error_at < mark:
        return replace(end, after_error=end.after_error.plus(place))
    return replace(end, without_finish=end.without_finish.plus(place)) if exchange.is_bare else end


def _behind_finish(exchange: Exchange) -> list[tuple[str, int]]:
    """What came behind the first event with a finish of the last choice, up to the mark."""
    if not exchange.finishes:
        return []
    firsts = {choice: number for number, choice, _ in reversed(exchange.finishes)}
    upto = exchange.mark_at or len(exchange.events) + 1
    return [each for each in _behind(exchange, max(firsts.values())) if each[1] < upto]


def _behind(exchange: Exchange, number: int | None) -> list[tuple[str, int]]:
    """Each kind once."""
    events = exchange.events[number:] if number is not None else ()
    kinds: dict[str, int] = {}
    for event in events:
        for kind in _kinds(event):
            kinds.setdefault(kind, event.number)
    return list(kinds.items())


def _kinds(event: Event) -> Iterator[str]:
    match event.parsed:
        case _ if event.is_mark:
            yield "the end mark"
        case ErrorSeen():
            yield "an error"
        case Chunk(deltas=deltas, usage=usage, extra=extra):
            if any(delta.texts or delta.tools for delta in deltas):
                yield "text"
            if any(delta.finish for delta in deltas):
                yield "a finish"
            if usage is not None:
                yield "usage"
            beside = [*extra, *(name for delta in deltas for name in (*delta.extra, *delta.choice_extra))]
            if usage is None and beside:
                yield f"other fields ({', '.join(sorted(set(beside))[:3])})"
        case Heartbeat(notes=notes):
            told = sorted(name for name, value in notes.items() if not is_empty(value))
            yield f"other fields ({', '.join(told[:3])})" if told else "an empty event"
        case _:
            yield "words"


def finishes_of(exchanges: Sequence[Exchange], profile: VendorProfile) -> tuple[FinishWord, ...]:
    """Every word, the most frequent first. A word counts once in an answer and choice."""
    found: dict[str, FinishWord] = {}
    guesses: dict[str, list[_Guess]] = {}
    for exchange in exchanges:
        for (choice, word), numbers in _said(exchange).items():
            known = profile.finish_reasons.get(word) or profile.finish_reasons.get(word.lower()) or ""
            told = found.get(word) or FinishWord(word, Seen(), known)
            told = replace(told, seen=told.seen.plus(exchange.place("event", numbers[0])))
            if exchange.is_stream and numbers[0] < _last_of(exchange, choice):
                told = replace(told, early=told.early.plus(exchange.place("event", numbers[0])))
            found[word] = told
            if not known and (guess := _guess(exchange, choice)) is not None:
                guesses.setdefault(word, []).append(guess)
    words = [_guessed(told, guesses.get(word, [])) for word, told in found.items()]
    return tuple(sorted(words, key=lambda told: (-told.seen.count, told.word)))


def _said(exchange: Exchange) -> dict[tuple[int, str], list[int]]:
    said: dict[tuple[int, str], list[int]] = {}
    for number, choice, word in exchange.finishes:
        said.setdefault((choice, word), []).append(number)
    return said


def _last_of(exchange: Exchange, choice: int) -> int:
    """The last event that added to a choice; one that says all of it again does not."""
    numbers = [pieces[-1][0] for (owner, _), pieces in exchange.said.items() if owner == choice and pieces]
    return max(numbers, default=0)


@dataclass(frozen=True, slots=True)
class _Guess:
    """What one answer makes of its finish word."""

    means: str
    reason: str


def _guess(exchange: Exchange, choice: int) -> _Guess | None:
    """What the word that ended this choice may mean; None where the answer failed."""
    if exchange.error_at is not None:
        return None
    if any(owner == choice and name.startswith("call ") for owner, name in exchange.pieces):
        return _Guess("tool_calls", "the answer is a tool call")
    limit = _limit(exchange.asked, _MAX_DEPTH)
    if limit is not None:
        told = max((report.usage.output or 0 for report in reports_of(exchange)), default=0)
        if told >= limit:
            return _Guess("length", f"{limit} tokens were allowed and {told} used")
        if not told and (count := counted_output(exchange)) > _NEAR * limit:
            return _Guess("length", f"{limit} tokens were allowed, and we count {count}")
    if any(owner == choice for owner, _ in exchange.pieces):
        return _Guess("stop", "nothing but an end was asked for")
    return None


def _limit(value: object, depth: int) -> int | None:
    """The least limit that a request states."""
    found = []
    for name, more in as_mapping(value).items():
        if name.replace("_", "").lower() in _LIMITS and type(more) is int and more > 0:
            found.append(more)
        elif isinstance(more, dict) and depth and (inner := _limit(more, depth - 1)) is not None:
            found.append(inner)
    return min(found, default=None)


def _guessed(told: FinishWord, guesses: Sequence[_Guess]) -> FinishWord:
    """What the answers say together. A word that ended two answers which had no other reason to end means `stop`,
    whatever else it ended: none for a limit or for calls would have stood there."""
    found = {guess.means: guess for guess in guesses}
    if sum(guess.means == "stop" for guess in guesses) >= _ENDS:
        guess = found["stop"]
    elif len(found) == 1 and "stop" not in found:
        (guess,) = found.values()
    else:
        return told
    return replace(told, guess=guess.means, reason=f"{guess.reason} ({told.seen.example})")
