"""Three say which tokenizer a model was made for: `toon.yaml`, its `config.json`, and the files that lie there.

In: what each of them says. Out: None if they agree; else a sentence that names the odd one out, both values, and what
to do. Never: decides that a difference does not matter, for then the ids of one tokenizer would be read as another's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from proxy.toon.model_folder import CONFIG_FILE, VERSION_KEY


@dataclass(frozen=True, slots=True)
class Claims:
    """`said` by `toon.yaml` of the model; `claimed` by its `config.json`, if it says anything; `found` is the hash of
    the tokenizer's files in `folder` (as it is written there); `registered` are the hashes by version."""

    folder: str
    said: str
    claimed: str | None
    found: str
    registered: Mapping[str, str]

    @property
    def fitting(self) -> list[str]:
        """The versions whose hash the files have."""
        return [version for version, sha256 in self.registered.items() if sha256 == self.found]


def disagreement(claims: Claims) -> str | None:
    said, claimed, fitting = claims.said, claims.claimed, claims.fitting
    adopt = f"`sluice toon adopt {claims.folder} --version"
    if claimed is None:
        return (
            f"{claims.folder}/{CONFIG_FILE} has no {VERSION_KEY}, and this file says {said}. "
            f"If the model was made for that version, {adopt} {said}` writes it down"
        )
    if claimed == said:
        return None if said in fitting else _files_differ(claims, adopt)
    if said in fitting:
        return (
            f"{CONFIG_FILE} differs: its {VERSION_KEY} is {claimed}, and this file and the hash of the tokenizer's "
            f"files say {said}. If the model was made for {said}, {adopt} {said}`; if not, put the files of {claimed} "
            "there"
        )
    if claimed in fitting:
        return (
            f"this file differs: it says {said}, and {CONFIG_FILE} and the hash of the tokenizer's files "
            f"say {claimed}. Write `tokenizer: '{claimed}'` here"
        )
    return (
        f"nothing agrees: this file says {said}, {CONFIG_FILE} says {claimed}, and the hash of the tokenizer's files "
        f"is {claims.found}, {_whose(fitting)}. {adopt} X.Y` takes them in as they are"
    )


def _files_differ(claims: Claims, adopt: str) -> str:
    said = claims.said
    return (
        f"the tokenizer's files differ: this file and {CONFIG_FILE} say {said}, whose hash is "
        f"{claims.registered[said]}, and the files in {claims.folder} have {claims.found}, {_whose(claims.fitting)}. "
        f"Restore the files of {said}, or, if the model was made for these, {adopt} X.Y`"
    )


def _whose(fitting: list[str]) -> str:
    return f"that of version {fitting[0]}" if fitting else "that of no version named here"
