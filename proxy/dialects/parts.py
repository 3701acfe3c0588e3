"""Small pieces that several grammars write alike: data URLs, tool arguments, numbers that a client may have sent wrong.

In: JSON values. Out: canonical values, or the caller's mistake. Knows no family.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from urllib.parse import quote

from proxy.canon.request import Image
from proxy.dialects.base import BadRequest
from proxy.dialects.payload import BROKEN, parse_json

#: What the user says where a vendor wants the user to speak and nobody did; blanks alone are refused.
OPENING = "."
_DATA_URL = re.compile(
    r"data:(?P<type>[\w.+-]+/[\w.+-]+)?(?P<parameters>(?:;[\w.+=-]+)*?)(?P<base64>;base64)?,", re.ASCII
)


def data_of_url(url: str) -> tuple[str, str] | None:
    """Media type and base64 of a data URL; None for every other URL."""
    found = _DATA_URL.match(url)
    if found is None or found["base64"] is None:
        return None
    return found["type"] or "application/octet-stream", url[found.end() :]


def image_of_url(url: str, detail: str | None = None, cache: Mapping[str, object] | None = None) -> Image:
    found = data_of_url(url)
    if found is None:
        return Image(url=url, detail=detail, cache=cache)
    return Image(found[0], found[1], detail=detail, cache=cache)


def url_of_image(image: Image) -> str:
    """As a URL, a data URL where the image came as data."""
    return image.url or f"data:{image.media_type or 'image/png'};base64,{image.data}"


def object_of_arguments(arguments: str) -> dict[str, object]:
    """A tool call's arguments for a vendor that wants an object. What is no object is kept under `arguments`: a model
    wrote it, and it must not get lost."""
    if not arguments.strip():
        return {}
    value, _ = parse_json(arguments.encode("utf-8", "surrogatepass"))
    if isinstance(value, dict):
        return value
    return {"arguments": arguments if value is BROKEN else value}


def object_schema(schema: Mapping[str, object] | None) -> Mapping[str, object]:
    """A tool's parameters for a vendor that demands them, and that they say that they are an object's."""
    if not schema:
        return {"type": "object", "properties": {}}
    return schema if schema.get("type") is not None else {"type": "object", **schema}


def short_user(user: str, most: int) -> str:
    """A user's id for a vendor that refuses long ones: another id of the same user, always the same. (Claude Code's is
    JSON of some 150 letters; the strictest vendors take 64)"""
    return user if len(user) <= most else sha256(user.encode("utf-8", "replace")).hexdigest()


def object_of_body(body: bytes) -> dict[str, object]:
    """The object that a plain answer is, as readers take it: also the one in an array. Empty if it is none."""
    value, _ = parse_json(body)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, dict) else {}


def objects(value: object) -> Iterator[dict[str, object]]:
    """The objects of a list, in order; none of anything else."""
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))


class Fields:
    """Reads typed fields of a client's body. The first one of a wrong type is the caller's mistake: `bad` holds it.
    `read` are the names that were asked for; the rest is `extra`."""

    def __init__(self, body: Mapping[str, object]) -> None:
        self._body = body
        self._read: set[str] = set()
        self.bad: BadRequest | None = None

    def extra(self, *more: str) -> dict[str, object]:
        """What was not asked for, and is not in `more`; nulls say nothing."""
        return {k: v for k, v in self._body.items() if k not in self._read and k not in more and v is not None}

    def get(self, name: str) -> object:
        self._read.add(name)
        return self._body.get(name)

    def refuse(self, name: str, wanted: str) -> None:
        self.bad = self.bad or BadRequest("invalid_type", f"`{name}` must be {wanted}.", name)

    def text(self, name: str) -> str | None:
        value = self.get(name)
        if value is not None and not isinstance(value, str):
            self.refuse(name, "a string")
        return value if isinstance(value, str) else None

    def flag(self, name: str) -> bool | None:
        value = self.get(name)
        if value is not None and not isinstance(value, bool):
            self.refuse(name, "true or false")
        return value if isinstance(value, bool) else None

    def whole(self, name: str) -> int | None:
        value = self.get(name)
        if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
            return int(value)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            self.refuse(name, "a whole number")
            return None
        return value if isinstance(value, int) else None

    def number(self, name: str) -> float | None:
        value = self.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.refuse(name, "a number")
            return None
        return value

    def mapping(self, name: str) -> Mapping[str, object] | None:
        value = self.get(name)
        if value is not None and not isinstance(value, dict):
            self.refuse(name, "an object")
        return value if isinstance(value, dict) else None

    def words(self, name: str) -> tuple[str, ...]:
        """A string, or a list of strings."""
        value = self.get(name)
        if isinstance(value, str):
            return (value,)
        if isinstance(value, list) and all(isinstance(word, str) for word in value):
            return tuple(value)
        if value is not None:
            self.refuse(name, "a string or a list of strings")
        return ()


def path_of(template: str, model: str) -> str:
    """A path with a model's name in it, whatever characters that has."""
    return template.format(quote(model, safe=""))
