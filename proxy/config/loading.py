"""From a configuration file to `Settings` (contract C4).

In: the file's path and the environment. Out: frozen `Settings`, or a `ConfigError`. The order: read the YAML, fill in
the environment, check every key by itself (`schema`), then what two keys say together. Never: print a value.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from proxy.config.complaints import complain, nearest
from proxy.config.document import Document, Place, read_document
from proxy.config.paths import inbox_dir, instance_id, journal_dir, ledger_url, rule_names
from proxy.config.schema import (
    EMPTY_KEY,
    WITHOUT_SECRETS,
    AuthSection,
    DefaultsSection,
    File,
    LedgerSection,
    UpstreamSection,
)
from proxy.config.settings import (
    DEFAULT_CREDENTIAL,
    Auth,
    ClientKey,
    Deadlines,
    LedgerSettings,
    LimitSettings,
    Listen,
    Secret,
    Settings,
    TargetSettings,
    TextSettings,
    UpstreamSettings,
)


def load_config(
    path: Path, env: Mapping[str, str] | None = None, *, secrets: bool = True, upstream: str | None = None
) -> Settings:
    """Reads and checks one configuration file; `env` is the process's environment where it is not given. Without
    `secrets`, for who will call no vendor, a key or header of an upstream may name a variable that is not set. For who
    will call one `upstream` alone, those of the others may."""
    all_secrets = secrets and upstream is None

    def is_spared(at: Place) -> bool:
        return not all_secrets and _is_secret(at) and (not secrets or at[1] != upstream)

    document = read_document(path, os.environ if env is None else env, is_spared)
    try:
        file = File.model_validate(document.values, context=None if all_secrets else WITHOUT_SECRETS)
    except ValidationError as problem:
        raise complain(problem, File, document) from None  # whose text would show what stands in the file
    asked = file.upstreams.get(upstream) if secrets and upstream is not None else None
    if asked is not None and asked.api_key == "":
        raise document.error(("upstreams", upstream or "", "api_key"), EMPTY_KEY)
    return _Loading(path, document, file).settings()


def _is_secret(place: Place) -> bool:
    return len(place) > 2 and place[0] == "upstreams" and place[2] in ("api_key", "headers")


#: What makes a vendor of a known family known, word for word.
_NEW_VENDOR: Final = (
    "; a new vendor needs a file in the rules folder, named as it is, of three lines: `vendor: NAME`, "
    "`dialects: [openai]`, `use: [_infra]`; `sluice probe` learns the rest"
)


class _Loading:
    """One file on its way: each method gives the settings of one section."""

    def __init__(self, path: Path, document: Document, file: File) -> None:
        self._path, self._document, self._file = path, document, file
        self._folder = path.parent

    def settings(self) -> Settings:
        file = self._file
        rules_dir = self._named_dir("rules", file.rules)
        vendors = rule_names(rules_dir)
        return Settings(
            listen=Listen(file.listen.host, file.listen.port),
            auth=self._auth(file.auth),
            ledger=self._ledger(file.ledger),
            rules_dir=rules_dir,
            upstreams={name: self._upstream(name, section, vendors) for name, section in file.upstreams.items()},
            models={alias: self._targets(alias) for alias in file.models},
            instance=instance_id(self._path),
            text=TextSettings(file.text.boundary, file.text.hold_ms),
            keepalive_s=file.keepalive_s,
            limits=LimitSettings(**file.limits.model_dump()),
            json_repair=file.json_.repair,
            shutdown_s=file.shutdown_s,
            prices_dir=self._named_dir("prices", file.prices),
            toon_registry=self._registry(),
        )

    def _named_dir(self, key: str, name: str | None) -> Path | None:
        if name is None:
            return None
        folder = (self._folder / name).resolve()
        if not folder.is_dir():
            raise self._document.error((key,), "there is no such folder")
        return folder

    def _registry(self) -> Path | None:
        if self._file.toon is None:
            return None
        found = (self._folder / self._file.toon.registry).resolve()
        if not found.is_file():
            raise self._document.error(("toon", "registry"), "there is no such file; docs/toon.md says what it holds")
        return found

    def _auth(self, section: AuthSection) -> Auth:
        keys = tuple(ClientKey(entry.tenant, entry.sha256) for entry in section.keys)
        if section.mode == "keys" and not keys:
            raise self._document.error(("auth", "mode"), "keys needs auth.keys, a list of tenant and sha256")
        if section.mode == "none" and keys:
            raise self._document.error(("auth", "keys"), "has no effect while auth.mode is none")
        seen: set[str] = set()
        for index, key in enumerate(keys):
            if key.sha256 in seen:
                raise self._document.error(("auth", "keys", index, "sha256"), "this key stands here twice")
            seen.add(key.sha256)
        return Auth(section.mode, keys)

    def _ledger(self, section: LedgerSection) -> LedgerSettings:
        try:
            url = ledger_url(section.url, self._folder)
        except ValueError as problem:
            raise self._document.error(("ledger", "url"), str(problem)) from None
        journals = journal_dir(url, section.journal_dir, self._folder)
        kept = section.retention
        return LedgerSettings(
            url,
            journals,
            inbox_dir(url, self._folder),
            section.journal_bytes,
            None if kept is None else kept.days,
            {} if kept is None else kept.tenants,
        )

    def _upstream(self, name: str, section: UpstreamSection, vendors: frozenset[str]) -> UpstreamSettings:
        place: Place = ("upstreams", name)
        if section.vendor not in vendors:
            at = (*place, "vendor")
            what = "of that name" if at in self._document.variables else f"called {section.vendor}"
            near = nearest(section.vendor, vendors)
            is_new = not near.startswith("did you mean") and not section.vendor.startswith("_")
            raise self._document.error(at, f"no rule file is {what}; {near}{_NEW_VENDOR if is_new else ''}")
        chosen = _over(self._file.defaults, section)
        variable = self._document.variables.get((*place, "api_key"))
        return UpstreamSettings(
            name=name,
            vendor=section.vendor,
            base_url=section.base_url,
            api_key=Secret(section.api_key) if section.api_key is not None else None,
            credential=section.credential or variable or DEFAULT_CREDENTIAL,
            dialect=section.dialect,
            deadlines=Deadlines(**chosen.deadlines.model_dump()),
            deadlines_said=frozenset(chosen.deadlines.model_fields_set),
            after_finish_s=chosen.after_finish_s,
            retries=chosen.retries,
            on_client_gone=chosen.on_client_gone,
            unsupported=chosen.unsupported,
            region=section.region,
            headers=section.headers,
        )

    def _targets(self, alias: str) -> tuple[TargetSettings, ...]:
        targets = self._file.models[alias]
        upstreams = self._file.upstreams
        for index, target in enumerate(targets):
            if target.upstream not in upstreams:
                at = ("models", alias, index, "upstream")
                raise self._document.error(at, f"no upstream has that name; {nearest(target.upstream, upstreams)}")
        return tuple(TargetSettings(target.upstream, target.model) for target in targets)


def _over(defaults: DefaultsSection, own: DefaultsSection) -> DefaultsSection:
    """`defaults` with what an upstream says itself laid over it, key by key."""
    given = {key: getattr(own, key) for key in DefaultsSection.model_fields if key in own.model_fields_set}
    if "deadlines" in given:
        deadlines = own.deadlines.model_dump(exclude_unset=True)
        given["deadlines"] = defaults.deadlines.model_copy(update=deadlines)
    return DefaultsSection.model_validate({key: getattr(defaults, key) for key in DefaultsSection.model_fields} | given)
