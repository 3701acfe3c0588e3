"""Log probabilities of text completions, to and from those of chat completions.

In: the `logprobs` object of a choice. Out: the same in the other grammar's form. Here lists stand side by side, one of
them of offsets into the text; there each token is an object of its own. What a vendor of this API said goes along (the
offset in the token's object, unknown fields as they are) and comes back as it was. Never raises.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from proxy.dialects.parts import objects
from proxy.dialects.payload import as_count, as_mapping, as_text

_OWN = ("tokens", "token_logprobs", "top_logprobs", "text_offset")
_CHATS = ("content", "refusal")


def to_chat(logprobs: object) -> object:
    """As a reader passes them on. What has no list of tokens is left as it is."""
    if not isinstance(logprobs, dict) or not isinstance(logprobs.get("tokens"), list):
        return logprobs
    rest = {name: value for name, value in logprobs.items() if name not in _OWN}
    return {**rest, "content": list(_entries(logprobs))}


def to_completions(logprobs: object, start: int) -> object:
    """As a client of this API reads them. `start` is where the text begins that they are of: letters of the answer."""
    if not isinstance(logprobs, dict) or not any(isinstance(logprobs.get(name), list) for name in _CHATS):
        return logprobs
    entries = [entry for name in _CHATS for entry in objects(logprobs.get(name))]
    offsets = []
    for entry in entries:
        told = as_count(entry.get("text_offset"))
        offsets.append(start if told is None else told)
        start += len(as_text(entry.get("token")))
    tops = [list(objects(entry.get("top_logprobs"))) for entry in entries]
    return {
        **{name: value for name, value in logprobs.items() if name not in _CHATS},
        "tokens": [as_text(entry.get("token")) for entry in entries],
        "token_logprobs": [entry.get("logprob") for entry in entries],
        "top_logprobs": [{as_text(one.get("token")): one.get("logprob") for one in top} for top in tops]
        if any(tops)
        else None,
        "text_offset": offsets,
    }


def _entries(logprobs: Mapping[str, object]) -> Iterator[dict[str, object]]:
    for place, token in enumerate(_list(logprobs.get("tokens"))):
        top = as_mapping(_at(logprobs, "top_logprobs", place))
        entry = {
            **_entry(as_text(token), _at(logprobs, "token_logprobs", place)),
            "top_logprobs": [_entry(other, logprob) for other, logprob in top.items()],
        }
        offset = _at(logprobs, "text_offset", place)
        yield entry if offset is None else {**entry, "text_offset": offset}


def _entry(token: str, logprob: object) -> dict[str, object]:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode("utf-8", "replace"))}


def _at(logprobs: Mapping[str, object], name: str, place: int) -> object:
    values = _list(logprobs.get(name))
    return values[place] if place < len(values) else None


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
