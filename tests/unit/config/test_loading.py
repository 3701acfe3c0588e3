"""A configuration file in, `Settings` or one clear complaint out (contract C4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from proxy.config import (
    Auth,
    ClientKey,
    Deadlines,
    LimitSettings,
    Listen,
    Secret,
    Settings,
    TargetSettings,
    TextSettings,
    load_config,
)
from proxy.errors import ConfigError

pytestmark = pytest.mark.clause("C4")

KEY = "sk-live-نباید-دیده-شود".encode().hex()
SMALLEST = """\
listen: {host: 127.0.0.1, port: 8080}
auth: {mode: none}
ledger: {url: "sqlite:///ledger.db"}
rules: rules
upstreams:
  main: {vendor: openai, base_url: "https://api.openai.com/v1", api_key: "${OPENAI_API_KEY}"}
models:
  gpt-4o: [{upstream: main, model: gpt-4o-2024-11-20}]
"""
Load = Callable[..., Settings]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Writes a configuration beside a folder of rules, and loads it."""
    rules = tmp_path / "rules"
    rules.mkdir()
    for vendor in ("openai", "azure_openai", "_default"):
        (rules / f"{vendor}.yaml").touch()

    def loaded(text: str, env: Mapping[str, str] | None = None) -> Settings:
        file = tmp_path / "sluice.yaml"
        file.write_text(text, encoding="utf-8")
        return load_config(file, {"OPENAI_API_KEY": KEY} if env is None else env)

    return loaded


@pytest.fixture
def complaint(load: Load, tmp_path: Path) -> Callable[..., str]:
    """Loads what must be refused, and gives the complaint without the folder's name."""

    def complained(text: str, env: Mapping[str, str] | None = None) -> str:
        with pytest.raises(ConfigError) as caught:
            load(text, env)
        said = str(caught.value)
        assert KEY not in said
        assert "\n" not in said
        return said.removeprefix(f"{tmp_path}/")

    return complained


def test_the_smallest_configuration(load: Load, tmp_path: Path) -> None:
    """What the contract shows loads, with every default filled in and every path absolute."""
    settings = load(SMALLEST)
    assert settings.listen == Listen("127.0.0.1", 8080)
    assert settings.auth == Auth("none", ())
    assert settings.ledger.url == f"sqlite:///{tmp_path}/ledger.db"
    assert settings.ledger.journal_dir == tmp_path / "ledger.db-journals"
    assert settings.ledger.inbox_dir == tmp_path / "ledger.db-inbox"
    assert settings.rules_dir == tmp_path / "rules"
    assert settings.models == {"gpt-4o": (TargetSettings("main", "gpt-4o-2024-11-20"),)}
    main = settings.upstreams["main"]
    assert (main.name, main.vendor, main.base_url) == ("main", "openai", "https://api.openai.com/v1")
    assert main.api_key == Secret(KEY)
    assert main.credential == "OPENAI_API_KEY"
    assert main.deadlines == Deadlines(connect=5, first_byte=120, stall=60, idle=30, total=1800)
    assert main.deadlines_said == frozenset()
    assert (main.after_finish_s, main.retries, main.on_client_gone, main.dialect) == (2.0, 0, "cancel", None)
    assert settings.text == TextSettings("grapheme", 40)
    assert settings.limits == LimitSettings(10 << 20, 8 << 20, 64 << 20)
    assert (settings.keepalive_s, settings.json_repair, settings.shutdown_s) == (0.0, "fences", 30.0)


def test_every_key_at_once(load: Load, tmp_path: Path) -> None:
    """All keys of the contract, each at a value that is not its default."""
    settings = load(
        f"""\
listen: {{host: "::1", port: 0}}
auth:
  mode: keys
  keys:
    - {{tenant: فروشگاه, sha256: {"AB" * 32}}}
ledger: {{url: "postgresql://u:p@db/sluice", journal_dir: spool}}
defaults:
  deadlines: {{connect: 1.5, stall: 0}}
  after_finish_s: 1
  retries: 0
  on_client_gone: drain
  continuation: {{on_cut: false, on_length: false}}
upstreams:
  azure:
    vendor: azure_openai
    base_url: https://x.example/openai/deployments/gpt/?api-version=2024-10-21
    api_key: literal-key
    credential: team-a
    dialect: openai
    headers: {{X-Team: a}}
    deadlines: {{connect: 2}}
    on_client_gone: cancel
  plain: {{vendor: openai, base_url: "http://127.0.0.1:9/"}}
models:
  模型: [{{upstream: azure, model: "2024"}}]
text: {{boundary: strict, hold_ms: 10000}}
keepalive_s: 15
limits: {{request_bytes: 1, line_bytes: 2, answer_bytes: 3}}
json: {{repair: none}}
shutdown_s: 0
rules: rules
"""
    )
    assert settings.listen == Listen("::1", 0)
    assert settings.auth == Auth("keys", (ClientKey("فروشگاه", "ab" * 32),))
    assert settings.ledger.url == "postgresql://u:p@db/sluice"
    assert settings.ledger.journal_dir == tmp_path / "spool"
    azure, plain = settings.upstreams["azure"], settings.upstreams["plain"]
    assert azure.base_url == "https://x.example/openai/deployments/gpt?api-version=2024-10-21"
    assert azure.deadlines == Deadlines(connect=2, first_byte=120, stall=0, idle=30, total=1800)
    assert (azure.credential, azure.dialect, azure.headers) == ("team-a", "openai", {"x-team": "a"})
    assert (azure.on_client_gone, azure.after_finish_s) == ("cancel", 1.0)
    assert plain.deadlines.connect == 1.5
    assert azure.deadlines_said == plain.deadlines_said == {"connect", "stall"}
    assert (plain.on_client_gone, plain.base_url) == ("drain", "http://127.0.0.1:9")
    assert (plain.api_key, plain.credential) == (None, "default")
    assert settings.models["模型"] == (TargetSettings("azure", "2024"),)
    assert settings.text == TextSettings("strict", 10_000)
    assert settings.limits == LimitSettings(1, 2, 3)
    assert (settings.keepalive_s, settings.json_repair, settings.shutdown_s) == (15.0, "none", 0.0)


def test_without_rules_the_shipped_set_is_used(load: Load) -> None:
    """Vendors are then checked against the rule files that come with the package, of which there are more."""
    text = SMALLEST.replace("vendor: openai", "vendor: deepseek")
    with pytest.raises(ConfigError, match="no rule file is called deepseek"):
        load(text)
    settings = load(text.replace("rules: rules\n", ""))
    assert settings.rules_dir is None
    assert settings.upstreams["main"].vendor == "deepseek"


def test_the_environment_fills_in_texts_and_numbers(load: Load) -> None:
    """Quoted or not, alone or inside a text; what a variable holds is never read as YAML."""
    text = SMALLEST.replace("port: 8080}", 'port: "${PORT}"}').replace("api.openai.com", "${HOST}.openai.com")
    env = {"OPENAI_API_KEY": "{not:yaml}#", "PORT": "8443", "HOST": "eu"}
    settings = load(text, env)
    assert settings.listen.port == 8443
    assert settings.upstreams["main"].base_url == "https://eu.openai.com/v1"
    assert settings.upstreams["main"].api_key == Secret("{not:yaml}#")


def test_anchors_and_merge_keys(load: Load) -> None:
    """YAML's own way of saying things once works, more than once too."""
    settings = load(
        SMALLEST.replace(
            "upstreams:\n  main: {",
            "upstreams:\n  main: &main {deadlines: {connect: 3}, ",
        ).replace("models:", "  second: &second {<<: *main, credential: b}\n  third: *second\nmodels:")
    )
    third = settings.upstreams["third"]
    assert (third.name, third.credential, third.deadlines.connect) == ("third", "b", 3.0)


def test_nothing_that_prints_settings_shows_a_secret(load: Load) -> None:
    """Neither `repr` nor `str` nor a format shows a key, a header's value or the database's password."""
    text = SMALLEST.replace("sqlite:///ledger.db", "postgresql://u:${PW}@h/d").replace(
        'api_key: "', 'headers: {x-token: "${PW}"}, api_key: "'
    )
    settings = load(text, {"OPENAI_API_KEY": KEY, "PW": "گذرواژه-1"})
    key = settings.upstreams["main"].api_key
    assert key is not None
    for shown in (repr(settings), str(settings), f"{key}{key:>40}{key!r}", "%s" % key):  # noqa: UP031  (the old way too)
        assert KEY not in shown
        assert "گذرواژه" not in shown
    assert key.reveal() == KEY


def test_the_instance_is_stable_for_one_file_on_one_host(load: Load, tmp_path: Path) -> None:
    """The same file gives the same name, another file another one."""
    first = load(SMALLEST)
    assert load(SMALLEST + "keepalive_s: 1\n").instance == first.instance
    other = tmp_path / "other.yaml"
    other.write_text(SMALLEST)
    assert load_config(other, {"OPENAI_API_KEY": KEY}).instance != first.instance


#: what stands in the smallest configuration, what stands there instead, and the complaint
REFUSED: Mapping[str, tuple[str, str, str]] = {
    "unknown key": ("auth:", "keepalive: 3\nauth:", "2: keepalive: unknown key; did you mean keepalive_s?"),
    "unknown key, nothing near": (
        "127.0.0.1, port: 8080}",
        "127.0.0.1, tls: 1}",
        "1: listen.tls: unknown key; valid are host, port",
    ),
    "unknown key on an upstream": (
        '"${OPENAI_API_KEY}"}',
        '"${OPENAI_API_KEY}",\n    deadlines: {frist_byte: 3}}',
        "7: upstreams.main.deadlines.frist_byte: unknown key; did you mean first_byte?",
    ),
    "unknown key of a target": (
        "model: gpt-4o-2024-11-20}]",
        "model: x, wieght: 1}]",
        "8: models.gpt-4o[0].wieght: unknown key; valid are model, upstream",
    ),
    "missing key": ("auth: {mode: none}\n", "", "1: auth: this key is missing"),
    "missing key of a target": ("upstream: main, ", "", "8: models.gpt-4o[0].upstream: this key is missing"),
    "key twice": ("rules: rules", "rules: rules\nrules: r", "5: rules: this key stands here twice"),
    "wrong type": ("port: 8080", "port: [8080]", "1: listen.port: must be a whole number"),
    "yes is no number": ("port: 8080", "port: yes", "1: listen.port: must be a number"),
    "not whole": ("port: 8080", "port: 80.5", "1: listen.port: must be a whole number"),
    "too large": ("port: 8080", "port: 65536", "1: listen.port: must be 65535 or less"),
    "negative": ("rules: rules", "text: {hold_ms: -1}", "4: text.hold_ms: must be 0 or more"),
    "hold too long": ("rules: rules", "text: {hold_ms: 10001}", "4: text.hold_ms: must be 10000 or less"),
    "no limit": ("rules: rules", "limits: {line_bytes: 0}", "4: limits.line_bytes: must be 1 or more"),
    "not a number": (
        "rules: rules",
        "defaults: {deadlines: {total: .nan}}",
        "4: defaults.deadlines.total: must be 0 or more",
    ),
    "none of the words": (
        "rules: rules",
        "text: {boundary: word}",
        "4: text.boundary: must be one of 'scalar', 'grapheme' or 'strict'",
    ),
    "number for text": (
        "model: gpt-4o-2024-11-20",
        "model: 4.1",
        "8: models.gpt-4o[0].model: must be text (put it in quotes if it looks like a number)",
    ),
    "section is a word": ("auth: {mode: none}", "auth: none", "2: auth: must be a section with keys of its own"),
    "no models": ("gpt-4o: [{upstream: main, model: gpt-4o-2024-11-20}]", "{}", "7: models: must not be empty"),
    "jwt": ("mode: none", "mode: jwt", "2: auth.mode: jwt is not built yet: none or keys"),
    "retries": (
        "rules: rules",
        "defaults: {retries: 1}",
        "4: defaults.retries: is not built yet: 0 is the one value allowed",
    ),
    "continuation": (
        "rules: rules",
        "defaults: {continuation: {on_cut: true}}",
        "4: defaults.continuation.on_cut: is not built yet: false is the one value allowed",
    ),
    "repair": ("rules: rules", "json: {repair: close}", "4: json.repair: close is not built yet: none or fences"),
    "failover": (
        "gpt-4o-2024-11-20}]",
        "a}, {upstream: main, model: b}]",
        "8: models.gpt-4o: must be a list of exactly one target: failover between several is not built yet",
    ),
    "keys without keys": (
        "mode: none",
        "mode: keys",
        "2: auth.mode: keys needs auth.keys, a list of tenant and sha256",
    ),
    "keys without effect": (
        "mode: none",
        f"mode: none, keys: [{{tenant: a, sha256: {'a' * 64}}}]",
        "2: auth.keys: has no effect while auth.mode is none",
    ),
    "a key that is no hash": (
        "mode: none",
        f"mode: keys, keys: [{{tenant: a, sha256: {KEY[:20]}}}]",
        "2: auth.keys[0].sha256: must be the SHA-256 of the key: 64 hexadecimal digits",
    ),
    "one key for two tenants": (
        "mode: none",
        f"mode: keys, keys: [{{tenant: a, sha256: {'a' * 64}}}, {{tenant: b, sha256: {'A' * 64}}}]",
        "2: auth.keys[1].sha256: this key stands here twice",
    ),
    "unknown vendor": (
        "vendor: openai",
        "vendor: azure_openia",
        "6: upstreams.main.vendor: no rule file is called azure_openia; did you mean azure_openai?",
    ),
    "the default table is no vendor": (
        "vendor: openai",
        "vendor: _default",
        "6: upstreams.main.vendor: no rule file is called _default; valid are azure_openai, openai",
    ),
    "unknown upstream": (
        "upstream: main",
        "upstream: mian",
        "8: models.gpt-4o[0].upstream: no upstream has that name; did you mean main?",
    ),
    "no such rules": ("rules: rules", "rules: rulez", "4: rules: there is no such folder"),
    "credentials in the URL": (
        "https://api",
        "https://u:${OPENAI_API_KEY}@api",
        "6: upstreams.main.base_url: must not hold credentials: they belong in api_key",
    ),
    "another scheme": (
        "https://api",
        "ftp://api",
        "6: upstreams.main.base_url: must be http:// or https:// and a host",
    ),
    "a port too high": (
        "api.openai.com/",
        "api.openai.com:65536/",
        "6: upstreams.main.base_url: must be a URL with, if any, a port from 1 to 65535",
    ),
    "a header that is not ours": (
        'api_key: "',
        'headers: {Host: x}, api_key: "',
        "6: upstreams.main.headers: must not set host: the proxy sets it",
    ),
    "a header that splits the head": (
        'api_key: "',
        'headers: {x-a: "b\\r\\nc"}, api_key: "',
        "6: upstreams.main.headers: x-a holds a control character",
    ),
    "ledger in memory": (
        "sqlite:///ledger.db",
        "sqlite://",
        "3: ledger.url: a ledger is sqlite:///FILE or postgresql://user:password@host/database",
    ),
    "ledger elsewhere": (
        "sqlite:///ledger.db",
        "mysql://${OPENAI_API_KEY}@h/d",
        "3: ledger.url: a ledger is sqlite:///FILE or postgresql://user:password@host/database",
    ),
    "variable not set": (
        "${OPENAI_API_KEY}",
        "${OPENAI_KEY}",
        "6: upstreams.main.api_key: the environment variable OPENAI_KEY is not set",
    ),
    "variable with a default": (
        "${OPENAI_API_KEY}",
        "${OPENAI_API_KEY:-none}",
        "6: upstreams.main.api_key: a variable is written ${NAME}: a letter or _, then letters, digits, _",
    ),
    "not YAML": ("rules: rules", "rules: [", "6: not valid YAML: expected ',' or ']', but got ':'"),
    "a tag": (
        "rules: rules",
        "rules: !!python/name:os.system ''",
        "4: rules: the YAML tag tag:yaml.org,2002:python/name:os.system is not allowed here",
    ),
    "an alias of itself": (
        "rules: rules",
        "defaults: &d {deadlines: *d}",
        "sluice.yaml: nested too deeply, or an alias that contains itself",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_named_with_its_place(complaint: Callable[..., str], case: str) -> None:
    """Each wrong configuration is refused in one line: file, line, key, what is allowed; never the value."""
    there, instead, expected = REFUSED[case]
    assert SMALLEST.count(there) == 1
    said = complaint(SMALLEST.replace(there, instead))
    assert said == (expected if expected.startswith("sluice.yaml:") else f"sluice.yaml:{expected}")


def test_several_mistakes_are_counted_and_the_first_is_named(complaint: Callable[..., str]) -> None:
    """The one nearest the top of the file is told in full."""
    text = SMALLEST.replace("port: 8080", "prot: 8080") + "retires: 3\ntext: 4\n"
    assert complaint(text) == "sluice.yaml:1: listen.prot: unknown key; did you mean port? (and 2 more)"


@pytest.mark.parametrize("key", ["", "sk with space", "sk-line-end\n", "ключ"])
def test_a_key_that_no_header_can_carry_is_refused(complaint: Callable[..., str], key: str) -> None:
    """An empty variable or one with a line end is told at start, without showing it."""
    said = complaint(SMALLEST, {"OPENAI_API_KEY": key})
    assert said.startswith("sluice.yaml:6: upstreams.main.api_key: ")
    assert key.strip() == "" or key.strip() not in said


def test_without_secrets_a_vendors_key_may_be_missing_and_nothing_else(load: Load, tmp_path: Path) -> None:
    """Who calls no vendor needs no key of one; all other variables are still asked for."""
    upstream = 'api_key: "${OPENAI_API_KEY}", headers: {x-extra: "Bearer ${EXTRA}"}'
    file = tmp_path / "sluice.yaml"
    file.write_text(SMALLEST.replace('api_key: "${OPENAI_API_KEY}"', upstream))
    main = load_config(file, {}, secrets=False).upstreams["main"]
    assert (main.api_key, main.credential, main.headers) == (Secret(""), "OPENAI_API_KEY", {"x-extra": "Bearer "})
    with pytest.raises(ConfigError, match="EXTRA is not set"):
        load_config(file, {"OPENAI_API_KEY": KEY})
    file.write_text(SMALLEST.replace("api.openai.com", "${HOST}"))
    with pytest.raises(ConfigError, match="base_url: the environment variable HOST is not set"):
        load_config(file, {}, secrets=False)


def test_for_one_upstream_the_keys_of_the_others_may_be_missing(load: Load, tmp_path: Path) -> None:
    """Its own must be there, and not be empty."""
    file = tmp_path / "sluice.yaml"
    other = '  other: {vendor: openai, base_url: "https://x.example/v1", api_key: "${OTHER_KEY}"}\nmodels:'
    file.write_text(SMALLEST.replace("models:", other))
    assert load_config(file, {"OPENAI_API_KEY": KEY}, upstream="main").upstreams["main"].api_key == Secret(KEY)
    with pytest.raises(ConfigError, match="OTHER_KEY is not set"):
        load_config(file, {"OPENAI_API_KEY": KEY})
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        load_config(file, {"OTHER_KEY": KEY}, upstream="main")
    with pytest.raises(ConfigError, match=r"upstreams\.main\.api_key: is empty"):
        load_config(file, {"OPENAI_API_KEY": ""}, upstream="main")


def test_files_that_cannot_be_read(complaint: Callable[..., str], tmp_path: Path) -> None:
    """No file, a folder, an empty file and another encoding each have their own reason."""
    with pytest.raises(ConfigError, match="cannot be read: No such file or directory"):
        load_config(tmp_path / "none.yaml", {})
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load_config(tmp_path, {})
    assert complaint("# nothing\n") == "sluice.yaml: the file is empty"
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"a: 1\nb: \xe9\n")
    with pytest.raises(ConfigError, match=r"latin\.yaml:2: not UTF-8"):
        load_config(latin, {})
