"""Error answers, known and unseen, and seeded mutations of them that keep their meaning.

In: recordings under `recordings/*/errors/`, and `unseen_errors.yaml`, `examined_errors.yaml` and `sibling_errors.yaml`
under `tests/contract/data/`. Out: `ErrorRow`s, and per mutation the row as another server would have written it:
other ids, other nesting, a relay in between. What changes the meaning is no mutation here: another status (it may be
all that is said), a dropped code where the message says nothing, another vendor's rules (the same words mean another
thing there). No client prints the 200 of an error as its status.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TypeAlias

import yaml

from proxy.canon.verdict import Observation, Phase
from proxy.stores.recordings import Read, Recording, find_recordings

ROOT = Path(__file__).resolve().parents[2]
UNSEEN = ROOT / "tests/contract/data/unseen_errors.yaml"
EXAMINED = ROOT / "tests/contract/data/examined_errors.yaml"
SIBLINGS = ROOT / "tests/contract/data/sibling_errors.yaml"


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """One answer and the classes it may have. `wait` is in seconds, None where the row asks for none."""

    id: str
    vendor: str
    status: int
    body: str
    classes: tuple[str, ...]
    headers: Mapping[str, str] = field(default_factory=dict)
    phase: Phase = Phase.HEAD
    event: str | None = None
    wait: float | None = None
    dialect: str = ""

    @property
    def seen(self) -> Observation:
        """As the pipeline shows it to the classifier."""
        return Observation(
            self.vendor, self.phase, self.status, self.headers, self.body.encode(), None, None, self.event
        )

    @property
    def recording(self) -> Recording:
        """The exchange: an event of a stream is framed as the first one of it."""
        asked = _asked(self.vendor, self.phase is not Phase.HEAD, self.dialect)
        body, headers = self.body.encode(), dict(self.headers)
        if self.phase is not Phase.HEAD:
            headers["content-type"] = "text/event-stream"
            name = f"event: {self.event}\n" if self.event else ""
            body = b"".join((name.encode(), b"data: ", body, b"\n\n"))
        reads = (Read(0.0, body),)
        return replace(asked, status=self.status, headers=tuple(headers.items()), reads=reads, end="close", end_at=0.0)


@cache
def _asked(vendor: str, streamed: bool, dialect: str) -> Recording:
    """A recorded exchange whose request this vendor could have been asked with: its own, or one of its family's."""
    recordings = find_recordings([ROOT / "recordings" / name for name in (vendor, "openai")])
    return next(row for row in recordings if row.asks_stream is streamed and row.dialect == dialect)


def unseen_rows() -> list[ErrorRow]:
    """The rows that no rule was written from."""
    return _listed(UNSEEN)


def examined_rows() -> list[ErrorRow]:
    """The rows of one who examined the rules without having seen them."""
    return _listed(EXAMINED)


def sibling_rows() -> list[ErrorRow]:
    """Siblings of published rows, written and labelled before the rules were run over them."""
    return _listed(SIBLINGS)


def _listed(path: Path) -> list[ErrorRow]:
    return [_unseen(row) for row in yaml.safe_load(path.read_text(encoding="utf-8"))]


def _unseen(row: Mapping[str, object]) -> ErrorRow:
    classes, headers = row["class"], row.get("headers", {})
    assert isinstance(headers, dict)
    return ErrorRow(
        id=str(row["id"]),
        vendor=str(row["vendor"]),
        status=int(str(row["status"])),
        body=str(row["body"]),
        classes=tuple(classes) if isinstance(classes, list) else (str(classes),),
        headers={"content-type": "application/json", **headers},
        phase=Phase(str(row.get("phase", "head"))),
        event=str(row["event"]) if "event" in row else None,
        wait=float(str(row["wait"])) if "wait" in row else None,
        dialect=str(row.get("dialect", "")),
    )


def known_rows() -> list[ErrorRow]:
    """The recorded answers whose whole body is the error (events of a stream need their framing taken off first)."""
    recordings = find_recordings(sorted((ROOT / "recordings").glob("*/errors")))
    return [_known(row) for row in recordings if row.expect.get("phase") == "head" and not row.is_event_stream]


def _known(row: Recording) -> ErrorRow:
    classes = row.expect["class"]
    assert isinstance(classes, list)
    return ErrorRow(
        row.key, row.vendor, row.status, row.body.decode("utf-8", "replace"), tuple(classes), dict(row.headers)
    )


Json: TypeAlias = dict[str, object] | list[object] | str
Mutation: TypeAlias = Callable[[ErrorRow, random.Random], ErrorRow | None]

_MESSAGE_KEYS = ("message", "msg", "Message", "error_msg", "status_msg", "ErrorMsg", "detail")
_IDS = re.compile(r"\b(?=[0-9a-f-]*\d)(?=[0-9a-f-]*[a-f])[0-9a-f]{4,}(?:-[0-9a-f]{4,})*\b|\d{6,}")
_NAMES = re.compile(r"`[^`\s]+`")
_PREFIXES = (
    "Upstream request failed: ",
    "Error from provider (Acme): ",
    "[api] ",
    "上游返回：",
    "خطا: ",
    "HTTP error, ",
)
_SUFFIXES = (" (request id: 20261130zX9)", " [trace 0a1b2c]", " See docs.example.net.", "（追踪号 7）", " — ref. 42a")
_REWORDINGS = (
    ("exceeded", ["surpassed", "gone over", "exceeded"]),
    ("reached", ["hit", "met"]),
    ("does not exist", ["doesn't exist", "could not be found", "is unknown"]),
    ("not found", ["could not be found", "does not exist"]),
    ("invalid api key", ["the API key is invalid", "API key not valid"]),
    ("incorrect api key provided", ["invalid API key", "the API key you sent is wrong"]),
    ("invalid", ["not valid", "malformed", "illegal"]),
    ("overloaded", ["under too heavy load", "too busy", "over capacity"]),
    ("please try again later", ["retry later", "try again in a while", "come back soon"]),
    ("too many requests", ["request rate too high", "you are sending requests too fast"]),
    ("insufficient balance", ["balance too low", "your balance is not enough", "not enough balance"]),
    ("too long", ["longer than allowed", "too large"]),
    ("expired", ["no longer valid", "out of date"]),
    ("timed out", ["took too long", "timeout"]),
    ("unauthorized", ["not authorized", "authorization failed"]),
    ("forbidden", ["access denied", "not permitted"]),
    ("deprecated", ["retired", "no longer offered"]),
    ("internal server error", ["an internal error occurred", "unexpected server failure"]),
)
_EXTRA = {"request_id": "4f1c", "success": False, "data": None, "timestamp": "2026-11-30T10:00:00Z", "path": "/v1/chat"}


def _json_of(row: ErrorRow) -> Json | None:
    try:
        value = json.loads(row.body)
    except ValueError:
        return None
    return value if isinstance(value, dict | list | str) else None


def _with_body(row: ErrorRow, value: object) -> ErrorRow:
    return replace(row, body=json.dumps(value, ensure_ascii=False))


def _map_messages(value: object, change: Callable[[str], str], key: str = "") -> object:
    if isinstance(value, dict):
        return {name: _map_messages(inner, change, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_map_messages(inner, change, key) for inner in value]
    is_message = isinstance(value, str) and (key in _MESSAGE_KEYS or (key == "error" and " " in value))
    return change(str(value)) if is_message and str(value)[:1] not in "{[" else value


def _on_messages(row: ErrorRow, change: Callable[[str], str]) -> ErrorRow | None:
    value = _json_of(row)
    if value is None:
        return None
    changed = _map_messages(value, change)
    return _with_body(row, changed) if changed != value else None


def other_ids(row: ErrorRow, dice: random.Random) -> ErrorRow | None:
    """Other ids, long numbers and quoted names in the messages."""

    def change(text: str) -> str:
        text = _NAMES.sub(lambda found: f"`acme-{dice.choice('αβج氷')}-{dice.randint(1, 99)}`", text)
        return _IDS.sub(lambda found: "".join(dice.choice("123456789") for _ in found.group()), text)

    return _on_messages(row, change)


def prefixed(row: ErrorRow, dice: random.Random) -> ErrorRow | None:
    """Words of a relay before the message."""
    before = dice.choice(_PREFIXES)
    return _on_messages(row, lambda text: before + text)


def suffixed(row: ErrorRow, dice: random.Random) -> ErrorRow | None:
    """Words of a relay behind the message."""
    after = dice.choice(_SUFFIXES)
    return _on_messages(row, lambda text: text + after)


def recased(row: ErrorRow, dice: random.Random) -> ErrorRow | None:
    """The messages in other case."""
    return _on_messages(row, dice.choice([str.upper, str.lower, str.capitalize]))


def reworded(row: ErrorRow, dice: random.Random) -> ErrorRow | None:
    """Other words for the same in the messages."""
    seed = dice.random()

    def change(text: str) -> str:
        for said, others in _REWORDINGS:
            text = re.sub(rf"\b{said}\b", others[int(seed * len(others))], text, flags=re.I)
        return text

    return _on_messages(row, change)


def respelled_codes(row: ErrorRow, dice: random.Random) -> ErrorRow | None:
    """Words with underscores for codes, in the ways of other languages."""
    spell = dice.choice(_SPELLINGS)

    def change(value: object, key: str = "") -> object:
        if isinstance(value, dict):
            return {name: change(inner, name) for name, inner in value.items()}
        if isinstance(value, list):
            return [change(inner, key) for inner in value]
        is_word = key in ("code", "type") and isinstance(value, str) and re.fullmatch(r"[a-z]+(_[a-z]+)+", value)
        return spell(str(value)) if is_word else value

    before = _json_of(row)
    after = change(before)
    return _with_body(row, after) if after != before else None


def _camel(word: str) -> str:
    return "".join(part.capitalize() for part in word.split("_"))


def _kebab(word: str) -> str:
    return word.replace("_", "-")


def _spaced_out(word: str) -> str:
    return word.replace("_", " ")


_SPELLINGS: tuple[Callable[[str], str], ...] = (str.upper, _kebab, _camel, _spaced_out)


def spaced(row: ErrorRow, dice: random.Random) -> ErrorRow | None:
    """The same JSON, laid out over lines with escapes."""
    value = _json_of(row)
    return None if value is None else replace(row, body=json.dumps(value, indent=dice.choice([1, 2, 4])) + "\n")


def extra_fields(row: ErrorRow, dice: random.Random) -> ErrorRow | None:
    """Fields that say nothing, beside the error and in it."""
    value = _json_of(row)
    if not isinstance(value, dict):
        return None
    extra = {name: _EXTRA[name] for name in dice.sample(sorted(_EXTRA), 3) if name not in value}
    inner = value.get("error")
    if isinstance(inner, dict):
        value = {**value, "error": {**extra, **inner}}
    return _with_body(row, {**extra, **value})


def retyped_codes(row: ErrorRow, dice: random.Random) -> ErrorRow | None:
    """A number for a code as text, and text of digits as a number."""

    def change(value: object, key: str = "") -> object:
        if isinstance(value, dict):
            return {name: change(inner, name) for name, inner in value.items()}
        if isinstance(value, list):
            return [change(inner, key) for inner in value]
        if key not in ("code", "error_code", "status_code") or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return str(value)
        return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value

    before = _json_of(row)
    after = change(before)
    return _with_body(row, after) if after != before else None


def in_a_list(row: ErrorRow, dice: random.Random) -> ErrorRow | None:
    """A list of one, as Google's streams write it."""
    value = _json_of(row)
    return _with_body(row, [value]) if isinstance(value, dict) else None


def in_detail(row: ErrorRow, dice: random.Random) -> ErrorRow | None:
    """FastAPI's `detail` around the error."""
    value = _json_of(row)
    return _with_body(row, {"detail": value}) if isinstance(value, dict) else None


def in_an_error(row: ErrorRow, dice: random.Random) -> ErrorRow | None:
    """One more object named `error`."""
    value = _json_of(row)
    return _with_body(row, {"error": value}) if isinstance(value, dict) else None


def json_in_a_message(row: ErrorRow, dice: random.Random) -> ErrorRow | None:
    """A relay that puts the whole answer into its own message, as text, with the status beside it."""
    value = _json_of(row)
    if not isinstance(value, dict):
        return None
    text = json.dumps(value, ensure_ascii=False, indent=dice.choice([None, 2]))
    return _with_body(row, {"error": {"message": text, "code": row.status, "status": "Error"}})


def json_as_the_error(row: ErrorRow, dice: random.Random) -> ErrorRow | None:
    """The answer as text where an error object should be."""
    value = _json_of(row)
    return _with_body(row, {"error": json.dumps(value, ensure_ascii=False)}) if isinstance(value, dict) else None


def json_behind_words(row: ErrorRow, dice: random.Random) -> ErrorRow | None:
    """`Error code: 429 - {"error": …}` as JSON behind words."""
    value = _json_of(row)
    if not isinstance(value, dict) or row.status == 200:
        return None
    text = f"Error code: {row.status} - {json.dumps(value, ensure_ascii=False)}"
    return _with_body(row, {"error": {"message": text, "type": "upstream_error", "code": str(row.status)}})


def repr_behind_words(row: ErrorRow, dice: random.Random) -> ErrorRow | None:
    """`Error code: 429 - {'error': …}`, as Python clients print it."""
    value = _json_of(row)
    if not isinstance(value, dict) or row.status == 200:
        return None
    return _with_body(row, {"error": {"message": f"Error code: {row.status} - {value!r}", "code": row.status}})


def provider_returned(row: ErrorRow, dice: random.Random) -> ErrorRow | None:
    """OpenRouter's way: the provider's own answer as text under `metadata.raw`."""
    raw = {"raw": row.body, "provider_name": "Acme"}
    return _with_body(row, {"error": {"message": "Provider returned error", "code": row.status, "metadata": raw}})


def other_content_type(row: ErrorRow, dice: random.Random) -> ErrorRow | None:
    """JSON under another content type and charset."""
    kinds = ["text/plain", "application/json;charset=GBK", "application/problem+json", "text/html; charset=utf-8", ""]
    return None if _json_of(row) is None else replace(row, headers={**row.headers, "content-type": dice.choice(kinds)})


def as_an_event(row: ErrorRow, dice: random.Random) -> ErrorRow | None:
    """The first event of a 200, or one in the middle, with the status in the error object."""
    value = _json_of(row)
    if not isinstance(value, dict) or row.phase is not Phase.HEAD or row.status < 400:
        return None
    inner = value.get("error")
    if isinstance(inner, dict):
        value = {**value, "error": {**inner, "http_status_code": row.status}}
    else:
        value = {**value, "http_status_code": row.status}
    headers = {**row.headers, "content-type": "text/event-stream"}
    return replace(_with_body(row, value), status=200, headers=headers, phase=dice.choice([Phase.FIRST, Phase.MID]))


def under_a_200(row: ErrorRow, dice: random.Random) -> ErrorRow | None:
    """A plain body under 200 that tells its status itself."""
    event = as_an_event(row, dice)
    return None if event is None else replace(event, headers=row.headers, phase=Phase.HEAD)


MUTATIONS: tuple[Mutation, ...] = (
    other_ids, prefixed, suffixed, recased, reworded, respelled_codes, spaced, extra_fields, retyped_codes, in_a_list,
    in_detail, in_an_error, json_in_a_message, json_as_the_error, json_behind_words, repr_behind_words,
    provider_returned, other_content_type, as_an_event, under_a_200,
)  # fmt: skip


def mutated(rows: list[ErrorRow], mutation: Mutation) -> list[ErrorRow]:
    """Every row that the mutation can be made on; the same rows on each run."""
    name = getattr(mutation, "__name__", "")
    made = [mutation(row, random.Random(f"{name}/{row.id}")) for row in rows]
    return [row for row in made if row is not None]
