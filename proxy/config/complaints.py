"""pydantic's errors in an operator's words (contract C4): where, which key, what is allowed, which name was meant.

In: the errors of one validation and the document they are about. Out: one `ConfigError`, for the first of them in the
file, that says how many more there are. Never: show a value, for it may be a secret.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from typing import Any, Final, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from proxy.config.document import Document, Place, key_path
from proxy.errors import ConfigError

_REASONS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "missing": lambda _: "this key is missing",
    "model_type": lambda _: "must be a section with keys of its own",
    "dict_type": lambda _: "must be a section with keys of its own",
    "list_type": lambda _: "must be a list",
    "string_type": lambda _: "must be text (put it in quotes if it looks like a number)",
    "string_too_short": lambda _: "must not be empty",
    "too_short": lambda _: "must not be empty",
    "greater_than_equal": lambda context: f"must be {context['ge']} or more",
    "less_than_equal": lambda context: f"must be {context['le']} or less",
    "literal_error": lambda context: f"must be one of {context['expected']}",
    "value_error": lambda context: str(context["error"]),
} | {
    name: (lambda _, kind=kind: f"must be {kind}")
    for kind, names in {
        "a whole number": ("int_type", "int_parsing", "int_from_float", "int_parsing_size"),
        "a number": ("float_type", "float_parsing"),
        "true or false": ("bool_type", "bool_parsing"),
    }.items()
    for name in names
}


def nearest(name: str, valid: Collection[str]) -> str:
    """The valid name that `name` was probably meant to be, as the end of a sentence."""
    if close := get_close_matches(name, sorted(valid), n=1, cutoff=0.5):
        return f"did you mean {close[0]}?"
    return f"valid are {', '.join(sorted(valid))}" if valid else "there is none to choose from"


def complain(problem: ValidationError, model: type[BaseModel], document: Document) -> ConfigError:
    """The error to raise for a document that does not fit `model`."""
    errors = problem.errors(include_url=False, include_input=False)
    places = [_place(error) for error in errors]
    # A misspelt key is unknown and, under its right name, missing: the first says more.
    first = min(range(len(errors)), key=lambda at: (errors[at]["type"] == "missing", document.line_of(places[at]) or 0))
    reason = _reason(errors[first], places[first], model)
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return document.error(places[first], reason + more)


def _place(error: ErrorDetails) -> Place:
    # pydantic marks an error in a key itself with a last step "[key]"
    return tuple(step for step in error["loc"] if step != "[key]")


def _reason(error: ErrorDetails, place: Place, model: type[BaseModel]) -> str:
    if error["type"] == "extra_forbidden":
        return f"unknown key; {nearest(str(place[-1]), _keys_at(place[:-1], model))}"
    words = _REASONS.get(error["type"])
    return words(error.get("ctx", {})) if words else f"does not fit ({error['type']})"


def _keys_at(place: Place, model: type[BaseModel]) -> list[str]:
    """The keys that `model` knows at a place."""
    annotation: object = model
    for step in place:
        annotation = _step(annotation, step)
    assert isinstance(annotation, type) and issubclass(annotation, BaseModel), key_path(place)
    return [field.alias or name for name, field in annotation.model_fields.items()]


def _step(annotation: object, step: str | int) -> object:
    """From a type to the type of what is inside it: a field of a section, an item of a list or of a mapping."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = {field.alias or name: field for name, field in annotation.model_fields.items()}
        return _bare(fields[str(step)].annotation)
    return _bare(get_args(annotation)[-1])


def _bare(annotation: object) -> object:
    """Without `Annotated` and `| None`."""
    while hasattr(annotation, "__metadata__"):
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, types.UnionType):
        return _bare(next(part for part in get_args(annotation) if part is not type(None)))
    return annotation
