"""Signs of an error in a payload, wherever the many families put their words and numbers (facts of vendors, 0.11).

In: an object that is no piece of an answer. Out: is it an error, or has it at least words where errors have theirs?
What it means is for the rules.
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.dialects.payload import as_mapping

# Where flat error answers (no `error` key) put their words and numbers (facts: Cerebras, Mistral, FastAPI, Baidu, Ark).
_ERROR_WORDS = ("message", "msg", "detail", "error_msg", "errmsg", "error_message", "error_description")
_ERROR_CODES = ("code", "error_code", "status_code", "errcode")
_NO_ERROR = (None, 0, 200, "", "0", "200", "success", "ok")


def speaks_of_error(value: Mapping[str, object]) -> bool:
    """Is this object without choices an error, or has it at least words where errors have theirs?"""
    return is_error(value) or any(value.get(k) for k in _ERROR_WORDS if isinstance(value.get(k), str | list | dict))


def is_error(value: Mapping[str, object]) -> bool:
    """Is this object without choices an error, by any habit that we know?"""
    if value.get("error") or value.get("object") == "error" or value.get("type") == "error" or value.get("errors"):
        return True
    if value.get("success") is False or bad_base_response(value):
        return True
    if any(_small(value.get(k)) not in _NO_ERROR for k in _ERROR_CODES if isinstance(value.get(k), str | int)):
        return True
    nested = as_mapping(value.get("Response")) or as_mapping(value.get("ResponseMetadata"))
    return bool(nested.get("Error"))


def _small(code: object) -> object:
    return code.lower() if isinstance(code, str) else code


def bad_base_response(value: Mapping[str, object]) -> bool:
    """MiniMax and its relays say errors in `base_resp`, also beside choices."""
    return as_mapping(value.get("base_resp")).get("status_code") not in (None, 0, "0")
