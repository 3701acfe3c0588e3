"""JSON Schemas for vendors that hold an answer to them, and take only some of what a schema can say.

In: a client's schema. Out: one that the vendor takes and that asks for the same, or None where there is none. Schemas
are never looked into beyond what they say themselves: a `$ref` stays one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from proxy.dialects.parts import objects
from proxy.dialects.payload import as_mapping, as_text, encode_json

# Nobody means more, and each level takes several frames of the interpreter's stack.
_DEEPEST = 64
_OPENAI_CLIENTS = ("chat", "responses")
_MANY = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "$defs", "definitions")


def is_strict(schema: Mapping[str, object], depth: int = 0) -> bool:
    """Is it one that OpenAI's strict mode takes: every object closed, with all of its properties required? Others are
    refused there, while Anthropic holds answers to schemas with optional properties."""
    if depth > _DEEPEST:
        return False
    if "properties" in schema or schema.get("type") == "object":
        required = schema.get("required")
        told = required if isinstance(required, list) else []
        is_closed = schema.get("additionalProperties") is False
        if not is_closed or any(name not in told for name in as_mapping(schema.get("properties"))):
            return False
    return all(is_strict(inner, depth + 1) for inner in _inner(schema))


def may_be_strict(schema: Mapping[str, object] | None, client: str) -> bool:
    """Clients of OpenAI's grammars know what its strict mode takes; what others call strict it may refuse."""
    return client in _OPENAI_CLIENTS or is_strict(schema or {})


def _inner(schema: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    for name in _NAMED:
        yield from (one for one in as_mapping(schema.get(name)).values() if isinstance(one, dict))
    for name in _MANY:
        yield from objects(schema.get(name))
    if isinstance(items := schema.get("items"), dict):
        yield items


# ---- closed schemas, as Anthropic takes them -------------------------------------------------------------------------

_FORMATS = frozenset(("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"))
#: What may be said beside the type; each type has further words of its own.
_ANYWHERE = frozenset(("type", "title", "description", "enum", "const", "default", "$ref"))
_BY_TYPE: Mapping[str, frozenset[str]] = {"object": frozenset(("required", "additionalProperties"))}


class Closer:
    """Makes a schema one of closed objects. What cannot be asked for (bounds, patterns) is put into the description, as
    the vendor's own SDK does. `is_changed` says whether any of this was needed."""

    def __init__(self) -> None:
        self.is_changed = False

    def close(self, schema: Mapping[str, object]) -> dict[str, object] | None:
        """None where an object must be open (its keys are not known), where it holds itself, or says nothing."""
        schema = _in_new_words(schema)
        return None if _holds_itself(schema) else self._close(schema, 0)

    def _close(self, schema: Mapping[str, object], depth: int) -> dict[str, object] | None:
        if depth > _DEEPEST:
            return None
        schema = {_WORDS.get(name, name): value for name, value in schema.items() if name not in _SAYS_NOTHING}
        kinds = _kinds(schema)
        if "object" in kinds and _is_open(schema):
            return None
        made: dict[str, object] = {}
        for name, value in schema.items():
            if name in _HOLDS_SCHEMAS:
                inner = self._inside(name, value, depth + 1)
                if inner is None:
                    return None
                made[name] = inner
            elif _is_taken(name, value, kinds):
                made[name] = value
        if "object" in kinds:
            self.is_changed |= schema.get("additionalProperties") is not False
            made = {"type": "object", "properties": {}, **made, "additionalProperties": False}
        if not made.keys() & _SAYS_WHAT:
            return None
        left = [f"{name}: {_shown(value)}" for name, value in schema.items() if name not in made]
        if left:
            self.is_changed = True
            told = (as_text(made.get("description")), f"{{{', '.join(left)}}}")
            made["description"] = "\n\n".join(text for text in told if text)
        return made

    def _inside(self, name: str, value: object, depth: int) -> object:
        if name in ("properties", "$defs"):
            named = {key: self._one(one, depth) for key, one in as_mapping(value).items()}
            return None if None in named.values() else named
        if name == "items":
            return self._one(value, depth)
        many = [self._one(one, depth) for one in value] if isinstance(value, list) else []
        return many if many and None not in many else None

    def _one(self, schema: object, depth: int) -> dict[str, object] | None:
        return self._close(schema, depth) if isinstance(schema, dict) else None


_SAYS_NOTHING = frozenset(("$schema", "$id", "strict"))
_WORDS = {"oneOf": "anyOf"}
_HOLDS_SCHEMAS = frozenset(("properties", "$defs", "items", "anyOf", "allOf"))
_SAYS_WHAT = frozenset(("type", "$ref", "anyOf", "allOf", "enum", "const"))
_DEFINITIONS = "#/$defs/"


def _in_new_words(schema: Mapping[str, object]) -> dict[str, object]:
    """`definitions`, and references to them, by their newer name."""
    told = dict(schema)
    if "definitions" not in told:
        return told
    told.setdefault("$defs", told.pop("definitions"))
    made = _renamed(told, 0)
    assert isinstance(made, dict), "an object stays one"
    return made


def _renamed(value: object, depth: int) -> object:
    if isinstance(value, list) and depth <= _DEEPEST:
        return [_renamed(inner, depth + 1) for inner in value]
    if not isinstance(value, dict) or depth > _DEEPEST:
        return value
    made = {name: _renamed(inner, depth + 1) for name, inner in value.items()}
    if isinstance(reference := made.get("$ref"), str):
        made["$ref"] = reference.replace("#/definitions/", _DEFINITIONS, 1)
    return made


def _holds_itself(schema: Mapping[str, object]) -> bool:
    """Can one come from a definition, or from the whole, back to it by references?"""
    definitions = as_mapping(schema.get("$defs"))
    references = {name: set(_references(one, 0)) for name, one in definitions.items()}
    references[""] = set(_references(schema, 0))
    done: set[str] = set()

    def is_circular(name: str, path: tuple[str, ...]) -> bool:
        if name in path:
            return True
        if name in done or name not in references or len(path) > _DEEPEST:
            return False
        found = any(is_circular(other, (*path, name)) for other in references[name])
        done.add(name)
        return found

    return any(is_circular(name, ()) for name in references)


def _references(value: object, depth: int) -> Iterator[str]:
    """Names of definitions; '' for the whole schema. Those inside definitions are theirs."""
    if depth > _DEEPEST:
        return
    if isinstance(value, dict):
        if isinstance(reference := value.get("$ref"), str):
            yield reference.removeprefix(_DEFINITIONS).removeprefix("#")
        for name, inner in value.items():
            if name != "$defs":
                yield from _references(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner, depth + 1)


def _kinds(schema: Mapping[str, object]) -> frozenset[str]:
    kind = schema.get("type")
    if kind is None:
        return frozenset(("object",)) if "properties" in schema else frozenset()
    return frozenset(word for word in (kind if isinstance(kind, list) else [kind]) if isinstance(word, str))


def _is_open(schema: Mapping[str, object]) -> bool:
    """Are keys wanted that it does not name?"""
    more = schema.get("additionalProperties")
    return isinstance(more, dict) or "patternProperties" in schema or (more is True and not schema.get("properties"))


def _is_taken(name: str, value: object, kinds: frozenset[str]) -> bool:
    if name == "minItems":
        return "array" in kinds and value in (0, 1)
    if name == "format":
        return "string" in kinds and isinstance(value, str) and value in _FORMATS
    return name in _ANYWHERE or any(name in _BY_TYPE.get(kind, ()) for kind in kinds)


def _shown(value: object) -> str:
    return encode_json(value).decode()
