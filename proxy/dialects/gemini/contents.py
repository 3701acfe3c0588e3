"""A conversation as Gemini's `systemInstruction` and `contents`.

In: canonical messages. Out: the instruction's parts and the turns, and what of them could not be said. Turns alternate
between `user` and `model`; messages of one side that follow each other become one turn, but results of tools always
stand in a turn by themselves, one for each call: the vendor counts them, and refuses anything beside them. A
conversation may not begin with a call that nobody asked for: then the user speaks first. A seal goes back onto the kind
of part from which it came. Never fetches an address, never guesses what lies behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from proxy.canon.request import (
    Audio,
    Document,
    Image,
    Message,
    Part,
    Refusal,
    Request,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    names_of_calls,
    split_system,
)
from proxy.dialects.base import Losses
from proxy.dialects.parts import OPENING, object_of_arguments
from proxy.dialects.payload import parse_request
from proxy.dialects.seals import GEMINI

# What the vendor's documentation gives for calls that another model made, or whose seal got lost: from Gemini 3 on, a
# turn whose first call has no seal at all is refused.
UNSEALED = "skip_thought_signature_validator"
_MEDIA_TYPES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "gif": "image/gif",
    "bmp": "image/bmp",
    "heic": "image/heic",
    "heif": "image/heif",
    "pdf": "application/pdf",
    "txt": "text/plain",
    "csv": "text/csv",
    "html": "text/html",
    "xml": "text/xml",
    "json": "application/json",
}
Made = dict[str, object]


@dataclass(slots=True)
class _Turn:
    """`kind` keeps results apart from what the user said. `seals` were taken from text: they and the places of their
    messages wait until the whole text of the turn is known."""

    kind: str  # user | model | results
    parts: list[Made]
    seals: list[tuple[str, int]] = field(default_factory=list)

    def made(self) -> Made:
        return {"role": "model" if self.kind == "model" else "user", "parts": self.parts}


@dataclass(frozen=True, slots=True)
class Conversation:
    system: tuple[Made, ...]
    contents: tuple[Made, ...]


def conversation_of(request: Request, losses: Losses, *, is_third: bool) -> Conversation:
    """`is_third`: a model of the third generation or later, which insists on seals and can be shown pictures by its
    tools."""
    head, rest = split_system(request.messages)
    writer = _Writer(losses, names_of_calls(request.messages), is_third)
    system = [part for message in head for part in _instruction(message, losses)]
    for message in rest:
        writer.take(message)
    contents = writer.finish()
    if system and not contents:  # the vendor wants a turn to answer to
        losses.hint(f"messages[{head[0].at}].role")
        return Conversation((), ({"role": "user", "parts": system},))
    return Conversation(tuple(system), tuple(contents))


def _instruction(message: Message, losses: Losses) -> list[Made]:
    """An instruction is text alone."""
    made = []
    for part in message.parts:
        if not isinstance(part, Text):
            losses.unknown_part(message.at, part)
        elif (told := part_of(part, message.at, losses)) is not None:
            made.append(told)
    return made


class _Writer:
    def __init__(self, losses: Losses, names: Mapping[str, str], is_third: bool) -> None:
        self._losses, self._names, self._is_third = losses, names, is_third
        self._turns: list[_Turn] = []
        self._shown: list[Made] = []  # what tools gave and their results cannot hold
        self._first = 0

    def take(self, message: Message) -> None:
        if not self._turns:
            self._first = message.at
        if message.name and message.role != "tool":
            self._losses.hint(f"messages[{message.at}].name")
        if message.role == "tool":
            self._results(message)
            return
        self._show()
        if message.role == "assistant":
            self._model(message)
            return
        if message.role != "user":  # an instruction in the midst of things keeps its place, as far as it can be told
            self._losses.hint(f"messages[{message.at}].role")
        self._say("user", [made for part in message.parts if (made := part_of(part, message.at, self._losses))])

    def finish(self) -> list[Made]:
        self._show()
        if self._turns and self._turns[0].kind == "model" and _calls(self._turns[0]):
            self._losses.hint(f"messages[{self._first}].role")
            self._turns.insert(0, _Turn("user", [{"text": OPENING}]))
        for turn in self._turns:
            if turn.kind == "model":
                self._seal(turn)
        return [turn.made() for turn in self._turns]

    def _say(self, kind: str, parts: list[Made]) -> _Turn | None:
        if self._turns and self._turns[-1].kind == kind:
            self._turns[-1].parts += parts
            return self._turns[-1]
        if not parts:
            return None
        self._turns.append(_Turn(kind, parts))
        return self._turns[-1]

    def _show(self) -> None:
        shown, self._shown = self._shown, []
        self._say("user", shown)

    def _model(self, message: Message) -> None:
        parts: list[Made] = []
        seals: list[tuple[str, int]] = []
        for part in message.parts:
            match part:
                case Thinking(signature=str(signature)) if part.format == GEMINI:
                    parts.append({"thought": True, "text": part.text, "thoughtSignature": signature})
                case Thinking(encrypted=str(seal)) if part.format == GEMINI:
                    seals.append((seal, message.at))
                    if part.text:
                        parts.append({"thought": True, "text": part.text})
                case Thinking():
                    self._losses.hint(f"messages[{message.at}].thinking")
                case ToolCall():
                    parts.append(self._call(part))
                case _:
                    if (made := part_of(part, message.at, self._losses)) is not None:
                        parts.append(made)
        turn = self._say("model", parts)
        if turn is not None:
            turn.seals += seals
        else:
            self._unplaced(seals)

    def _call(self, call: ToolCall) -> Made:
        if call.cache is not None:
            self._losses.hint("cache_control")
        told: Made = {"name": call.name, "args": object_of_arguments(call.arguments)}
        made: Made = {"functionCall": {"id": call.id, **told} if call.id else told}
        if call.signature is not None:
            made["thoughtSignature"] = call.signature
        return made

    def _seal(self, turn: _Turn) -> None:
        """Seals of the answer's text go to its end, where the vendor puts them; one more is not known to come."""
        texts = [part for part in turn.parts if "text" in part and "thought" not in part]
        if turn.seals and texts:
            texts[-1]["thoughtSignature"] = turn.seals.pop()[0]
        self._unplaced(turn.seals)
        if self._is_third and (calls := _calls(turn)):
            calls[0].setdefault("thoughtSignature", UNSEALED)

    def _unplaced(self, seals: list[tuple[str, int]]) -> None:
        for _, at in seals:
            self._losses.hint(f"messages[{at}].thinking")

    def _results(self, message: Message) -> None:
        for part in message.parts:
            if isinstance(part, ToolResult):
                self._say("results", [self._result(part, message.at)])
            else:
                self._losses.unknown_part(message.at, part)

    def _result(self, result: ToolResult, at: int) -> Made:
        if result.cache is not None:
            self._losses.hint("cache_control")
        texts = [text for part in result.parts if (text := _text_of(part, self._losses)) is not None]
        shown = [
            made
            for part in result.parts
            if not isinstance(part, Text) and not _is_text(part) and (made := part_of(part, at, self._losses))
        ]
        told: Made = {
            "name": result.name or self._names.get(result.call) or result.call,
            "response": _response("\n".join(texts), is_error=result.is_error),
        }
        if shown and self._is_third:
            told["parts"] = shown
        elif shown:
            self._shown += [{"text": f"What the tool call {result.call} gave:"}, *shown]
        return {"functionResponse": {"id": result.call, **told} if result.call else told}


def _calls(turn: _Turn) -> list[Made]:
    return [part for part in turn.parts if "functionCall" in part]


def _is_text(part: Part) -> bool:
    return isinstance(part, Document) and bool(part.text)


def _text_of(part: Text | Image | Document, losses: Losses) -> str | None:
    if isinstance(part, Text) or _is_text(part):
        made = part_of(part, 0, losses)
        return None if made is None else str(made["text"])
    return None


def _response(text: str, *, is_error: bool) -> Made:
    """An object is wanted: a result that is one goes as it is, where that changes no number; every other is text."""
    if is_error:
        return {"error": text}
    value, is_exact = parse_request(text.encode("utf-8", "surrogatepass"))
    return value if is_exact and isinstance(value, dict) else {"output": text}


def part_of(part: Part, at: int, losses: Losses) -> Made | None:
    """One part, None if it says nothing or cannot be said."""
    cache = getattr(part, "cache", None)
    if cache is not None:
        losses.hint("cache_control")
    match part:
        case Text(text=text) | Refusal(text=text):
            return {"text": text} if text else None
        case Image():
            if part.detail not in (None, "auto"):
                losses.hint(f"messages[{at}].image.detail")
            return _media(part.media_type or "image/png", part.data, part.url, at, losses, "image")
        case Audio():
            return {"inlineData": {"mimeType": f"audio/{part.format or 'wav'}", "data": part.data}}
        case Document(text=text) if text:
            return {"text": f"{part.name}\n{text}" if part.name else text}
        case Document():
            return _media(part.media_type or "application/pdf", part.data, part.url, at, losses, "document")
        case _:
            losses.unknown_part(at, part)
            return None


def _media(media_type: str, data: str, url: str, at: int, losses: Losses, kind: str) -> Made | None:
    """The vendor fetches from public or signed https addresses and from its own stores. It wants to be told the media
    type, which only the address' ending can tell here; where that does not, the vendor decides."""
    if data:
        return {"inlineData": {"mimeType": media_type, "data": data}}
    if not url.startswith(("https://", "gs://")):
        losses.part(at, kind)  # an id of another vendor's store, or an address that is not fetched from
        return None
    ending = url.partition("?")[0].partition("#")[0].rpartition(".")[2].lower()
    known = _MEDIA_TYPES.get(ending)
    return {"fileData": {"mimeType": known, "fileUri": url} if known else {"fileUri": url}}
