"""Which model of the ledger a name on an invoice means.

In: the names on both sides. Out: one group for each model, called as the invoice calls it. Vendors write one model in
several ways: with its maker before it (`openai/gpt-4o`), with a date or without, with a region, in capitals, with
blanks. A name that means nothing here stays a group of its own, and so does a model that is on no line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_REGION = re.compile(r"^(us|eu|apac|jp|au|global|us-gov)[.](?=[a-z])")
_DATED = re.compile(r"[-@:_ ]?(v\d+([:-]\d+)?|20\d\d-?[01]\d-?[0-3]\d|[01]\d[0-3]\d|latest|preview|\d{3})$")
_MAKERS = (
    "anthropic",
    "meta",
    "amazon",
    "mistral",
    "cohere",
    "google",
    "openai",
    "deepseek",
    "qwen",
    "ai21",
    "moonshotai",
)
_SEPARATORS = re.compile(r"[\s_./:@]+")


def plain(name: str) -> str:
    """A name without its maker, region and capitals; its date stays."""
    last = name.strip().lower().rpartition("/")[2]
    last = _REGION.sub("", last)
    return _SEPARATORS.sub("-", last).strip("-")


def undated(name: str) -> str:
    """The same without what says which edition."""
    bare = name
    while (shorter := _DATED.sub("", bare)) != bare and shorter:
        bare = shorter
    return bare


def squeezed(name: str) -> str:
    """Letters and digits alone, without its maker: `Claude3.5Sonnet` is `anthropic.claude-3-5-sonnet-20241022-v2:0`."""
    bare = undated(plain(name))
    for maker in _MAKERS:
        bare = bare.removeprefix(f"{maker}-")
    return re.sub(r"[^a-z0-9]+", "", bare)


def groups(ledger: Iterable[tuple[str, str]], invoice: Iterable[str]) -> dict[tuple[str, str], str]:
    """For each (served model, asked model) of the ledger the name of its group: that of the invoice's model which it
    is, or its served name. The nearest of several wins: the exact name, the same in other writing, the same without
    its date where only one such is on the invoice."""
    names = sorted(set(invoice))
    exact = set(names)
    by_plain = _unique((plain(name), name) for name in names)
    by_bare = _unique((undated(plain(name)), name) for name in names)
    by_letters = _unique((squeezed(name), name) for name in names)
    found: dict[tuple[str, str], str] = {}
    for served, asked in ledger:
        both = (served, asked)
        tries = [name for name in both if name in exact]
        tries += [by_plain[plain(name)] for name in both if plain(name) in by_plain]
        tries += [by_bare[undated(plain(name))] for name in both if undated(plain(name)) in by_bare]
        tries += [by_letters[squeezed(name)] for name in both if squeezed(name) in by_letters]
        found[both] = tries[0] if tries else served
    return found


def _unique(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Only those that mean one name."""
    seen: dict[str, str | None] = {}
    for key, name in pairs:
        seen[key] = name if seen.get(key, name) == name else None
    return {key: name for key, name in seen.items() if name is not None}
