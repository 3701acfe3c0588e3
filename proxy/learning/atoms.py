"""What could tell answers apart: the single conditions that hold for one answer, with what speaks for each.

In: an answer as the classifier sees it. Out: `Atom`s, each a condition as a rule file writes it, with a score: how
likely it is to hold for answers of the same meaning that nobody has seen, and for no other. Texts that quote the
request, ids and numbers are no reasons. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import orjson

from proxy.canon.verdict import ErrorClass
from proxy.learning.words import SPACELESS, STOPWORDS, WordStats, code_parts, pieces_of, without_asked
from proxy.semantics.classifier import Seen
from proxy.semantics.kinds import as_text
from proxy.semantics.paths import JsonPath, parse_path
from proxy.semantics.rule import Condition
from proxy.semantics.sameness import TELLING_HEADER

_MAX_PHRASE: Final = 5
_MAX_RUN: Final = 8
_MAX_WALK: Final = 60
#: A run of a script without spaces, or a word, as it stands in the text; what lies between them is kept for the phrase.
_UNIT: Final = re.compile(rf"[{SPACELESS}]+|[^\W{SPACELESS}]+(?:[-'_.][^\W{SPACELESS}]+)*")
_GAP: Final = re.compile(r"#|[\"'`«»“”‘’<>{}\[\]()|]|[.!?;]\s|[。！？；，、：\n]")
#: A number, or a length of time: never the same twice.
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*(?:ms|s|secs?|m|mins?|h|hrs?|d)?", re.IGNORECASE)
#: One word of letters and digits, or of capitals: what somebody wrote for a program.
_MARKER: Final = re.compile(r"(?=[\w.-]*\d)(?=[\w.-]*[^\W\d_])\w[\w.-]+\w|[A-Z][A-Z0-9]*_[A-Z0-9_]+")
#: What vendors call their codes.
_NAMED: Final = re.compile(r"code|err|type|kind|reason|status|no$", re.IGNORECASE)
# Say "error" and nothing else, at most vendors.
_WEAK_CODES: Final = frozenset(
    re.findall(
        r"\w+",
        """error fail failed failure unknown invalid_request_error invalid_request bad_request badrequest api_error
        server_error internal_error internal_server_error internalerror request_error unknown_error upstream_error
        invalid_argument invalidparameter invalid_parameter none null false true ok success exception http_error""",
    )
)
# 200 and the usual error statuses say little by themselves; an odd one is somebody's choice.
_PLAIN_STATUS: Final[Mapping[int, float]] = {200: -2.5, 400: -1.5, 422: -1.0, 500: -1.0, 403: -0.8, 429: -0.5}


@dataclass(frozen=True, slots=True)
class Atom:
    """`key` and `value` are what stands under `when:`; `score` is 1 for what is worth a rule, below 0 for what is not;
    `condition` is the same for the classifier."""

    key: str
    path: str
    value: str | int
    score: float
    condition: Condition

    @property
    def when(self) -> dict[str, object]:
        """As a rule file writes it."""
        if self.key in ("status", "finish"):
            return {self.key: self.value}
        return {self.key: {self.path: [self.value] if self.key == "json" else self.value}}


def atoms_of(seen: Seen, error_class: ErrorClass, stats: WordStats, asked: Collection[str]) -> list[Atom]:
    """Every condition that holds for this answer and could be a reason, the best first."""
    found = [*_codes(seen, error_class, stats, asked), *_fields(seen, asked), *_quoted_fields(seen)]
    found += _headers(seen, error_class, stats)
    found += _phrases(seen, error_class, stats, asked)
    if seen.obs.finish:
        found.append(_finish(seen.obs.finish))
    if seen.status is not None:
        found.append(_status(seen.status))
    unique = {(atom.key, atom.path, atom.value): atom for atom in reversed(found)}
    return sorted(unique.values(), key=lambda atom: -atom.score)


def marks_of(seen: Seen, asked: Collection[str]) -> frozenset[str]:
    """What an answer says in codes rather than in words: codes, fields and headers that are named so; tags in the
    message where there are none. Answers that say the same words with other marks mean other things."""
    marks = [f"{atom.path}={atom.value}" for atom in (*_fields(seen, asked), *_quoted_fields(seen))]
    marks += [f"{name}: {value}" for name, value in _telling_headers(seen)]
    marks += [code.lower() for code in seen.said.codes if without_asked(code, asked) == code]
    if not marks:
        found = [_MARKER.findall(without_asked(message[:600], asked)) for message in seen.said.messages]
        marks = [tag for tags in found for tag in tags if not _NUMBER.fullmatch(tag)]
    return frozenset(marks)


def status_atom(seen: Seen) -> Atom | None:
    return _status(seen.status) if seen.status is not None else None


def _status(status: int) -> Atom:
    condition = Condition(status=(range(status, status + 1),))
    return Atom("status", "", status, _PLAIN_STATUS.get(status, 0.2), condition)


def _finish(word: str) -> Atom:
    return Atom("finish", "", word, 3.0, Condition(finish=frozenset({word.lower()})))


def _codes(seen: Seen, error_class: ErrorClass, stats: WordStats, asked: Collection[str]) -> Iterator[Atom]:
    quoted = {word.lower() for word in asked}
    for code in seen.said.codes[:8]:
        word = code.lower()
        if word in quoted or len(code) > 80 or code == str(seen.status):
            continue
        score = 2.6 if code.isdigit() else 3.0 + _leaning_of_code(code, error_class, stats)
        yield _json("$code", int(code) if code.isdigit() else code, score - (2.8 if word in _WEAK_CODES else 0.0))


def _leaning_of_code(code: str, error_class: ErrorClass, stats: WordStats) -> float:
    """The whole word if other vendors say it, else the sum of its parts. A word that means something else everywhere
    is a weak reason to say otherwise, even at the vendor where it did once."""
    lean = stats.leaning(f"={code.lower()}", error_class)
    if lean is None:
        known = [part for word in code_parts(code) if (part := stats.leaning(word, error_class)) is not None]
        lean = max(-1.0, min(1.0, sum(known) / 2))
    return lean if lean > 0 else 3 * lean


def _json(path: str, value: str | int, score: float) -> Atom:
    where: JsonPath = parse_path(path)
    return Atom("json", path, value, score, Condition(json=((where, frozenset({as_text(value)})),)))


def _fields(seen: Seen, asked: Collection[str]) -> Iterator[Atom]:
    """Values of other fields: a vendor's own name for its code. A code under its own path says no more than `$code`,
    but two codes that must both hold stand under two paths."""
    told = {code.lower() for code in seen.said.codes}
    quoted = {word.lower() for word in asked}
    for path, value in _scalars(seen.said.payload):
        text = as_text(value)
        if text in quoted or text == str(seen.status) or len(text) > 60 or " " in text:
            continue
        named = _NAMED.search(path.rsplit(".", 1)[-1])
        is_id = without_asked(text, ()) != text
        if not is_id and named is not None and text not in _WEAK_CODES:
            yield _json(path, value, 1.2 if text in told else 2.2)


def _quoted_fields(seen: Seen) -> Iterator[Atom]:
    """The same in JSON that stands inside a text, where no path leads: as words of that text."""
    told = {code.lower() for code in seen.said.codes}
    for path, text in _scalars(seen.said.payload):
        if not isinstance(text, str) or not text.lstrip().startswith(("{", "[")):
            continue
        for inner, value in _scalars(_loaded(text)):
            name, word = inner.rsplit(".", 1)[-1], as_text(value)
            if word in told or not _NAMED.search(name) or word in _WEAK_CODES or len(word) > 60:
                continue
            if " " not in word and without_asked(word, ()) == word:
                pattern = rf"\b{_escaped(name)}\W+{_escaped(word)}\b"
                condition = Condition(match=((parse_path(path), _compiled(pattern)),))
                yield Atom("match", path, pattern, 2.1, condition)


def _loaded(text: str) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _scalars(payload: object) -> Iterator[tuple[str, str | int]]:
    """Paths and values of texts and whole numbers that stand where errors do, not in an answer's choices."""
    waiting: list[tuple[str, object]] = [("", payload)]
    for _ in range(_MAX_WALK):
        if not waiting:
            return
        path, value = waiting.pop(0)
        if isinstance(value, dict):
            waiting += [
                (f"{path}.{name}" if path else name, inner)
                for name, inner in value.items()
                if re.fullmatch(r"[\w-]+", name) and name not in ("choices", "messages", "content", "input", "usage")
            ]
        elif isinstance(value, list):
            waiting += [(f"{path}[{number}]", inner) for number, inner in enumerate(value[:3])]
        elif path and isinstance(value, str | int) and not isinstance(value, bool):
            yield path, value


def _headers(seen: Seen, error_class: ErrorClass, stats: WordStats) -> Iterator[Atom]:
    for name, value in _telling_headers(seen):
        pattern = _compiled(f"^{_escaped(value)}$")
        score = 2.3 + _leaning_of_code(value, error_class, stats)
        yield Atom("header", name, f"^{_escaped(value)}$", score, Condition(header=((name, pattern),)))


def _telling_headers(seen: Seen) -> Iterator[tuple[str, str]]:
    for name, value in seen.headers.items():
        if TELLING_HEADER.search(name) and value and len(value) <= 60 and without_asked(value, ()) == value:
            yield name, value


def _phrases(seen: Seen, error_class: ErrorClass, stats: WordStats, asked: Collection[str]) -> Iterator[Atom]:
    for where, message in _texts(seen):
        path = parse_path(where)
        for words in _runs(without_asked(message[:600], asked)):
            for phrase in _parts_of(words):
                score = _score(phrase, error_class, stats)
                if score > -0.5:
                    text = _escaped("".join(phrase))
                    condition = Condition(match=((path, _compiled(text)),))
                    yield Atom("match", where, text, score, condition)


def _texts(seen: Seen) -> Iterator[tuple[str, str]]:
    """What is said to people, with its path; under names that are nobody's but this vendor's as well."""
    messages = seen.said.messages[:4]
    yield from (("$message", message) for message in messages)
    told = " ".join(messages)
    for path, value in _scalars(seen.said.payload):
        if isinstance(value, str) and value.strip() and value not in told and value not in seen.said.codes:
            yield path, value


def _runs(text: str) -> Iterator[list[tuple[str, str]]]:
    """Stretches of text between gaps, as units with what stands before each."""
    for stretch in _GAP.split(text):
        run: list[tuple[str, str]] = []
        end = 0
        for found in _UNIT.finditer(stretch):
            between = stretch[end : found.start()]
            is_number = _NUMBER.fullmatch(found[0]) is not None
            if run and (len(between) > 3 or is_number):
                yield run
                run = []
            if not is_number:
                run.append((between if run else "", found[0]))
            end = found.end()
        if run:
            yield run


def _parts_of(run: list[tuple[str, str]]) -> Iterator[list[str]]:
    """Every phrase of up to five words in a run; of a run without spaces, its parts of two to eight characters."""
    for start, (_, unit) in enumerate(run):
        if re.fullmatch(f"[{SPACELESS}]+", unit):
            for size in range(2, min(_MAX_RUN, len(unit)) + 1):
                for offset in range(min(len(unit) - size + 1, 40)):
                    yield [unit[offset : offset + size]]
            continue
        phrase = [unit]
        yield list(phrase)
        for between, following in run[start + 1 : start + _MAX_PHRASE]:
            phrase += [between, following]
            yield list(phrase)


def _score(phrase: list[str], error_class: ErrorClass, stats: WordStats) -> float:
    words = [word for word in phrase if word.strip() and _UNIT.fullmatch(word)]
    telling = [word for word in words if word.lower() not in STOPWORDS]
    if not telling or len("".join(telling)) < 2:
        return -1.0
    # A phrase that begins or ends in "the" is no better than the same without.
    edge = sum(0.3 for word in (words[0], words[-1]) if word.lower() in STOPWORDS)
    leanings = [_leaning(word, error_class, stats) for word in telling]
    total = max(-1.0, min(1.6, sum(leanings)))
    marker = 0.8 if any(_MARKER.fullmatch(word) for word in telling) else 0.0
    lone = 0.7 if len(telling) == 1 and not marker and not _is_spaceless(telling[0], 4) else 0.0
    return 0.9 + total + marker - edge - lone - 0.12 * max(0, len(words) - 3)


def _is_spaceless(word: str, least: int) -> bool:
    return len(word) >= least and re.fullmatch(f"[{SPACELESS}]+", word) is not None


def _leaning(word: str, error_class: ErrorClass, stats: WordStats) -> float:
    """A word that nobody has said yet is somebody's own, and worth something."""
    known = [lean for piece in pieces_of(word.lower()) if (lean := stats.leaning(piece, error_class)) is not None]
    return sum(known) / len(known) if known else 0.25


@lru_cache(maxsize=1 << 14)  # the answers of a group have most of their phrases in common
def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression, re.IGNORECASE)


def _escaped(text: str) -> str:
    """A regular expression for the text itself, escaping no more than it must."""
    return re.sub(r"([\\.^$*+?{}\[\]()|])", r"\\\1", text)


def joined(atoms: Iterable[Atom]) -> Condition:
    """All of them at once. Two atoms of one kind stand side by side."""
    parts = [atom.condition for atom in atoms]
    return Condition(
        status=next((part.status for part in parts if part.status is not None), None),
        header=tuple(pair for part in parts for pair in part.header),
        json=tuple(pair for part in parts for pair in part.json),
        match=tuple(pair for part in parts for pair in part.match),
        finish=next((part.finish for part in parts if part.finish is not None), None),
    )
