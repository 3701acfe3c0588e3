"""The composition root: what settings and rules become, and what is refused before anything is opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.app import check_dialects, routes
from proxy.config import Settings, load_config
from proxy.errors import ConfigError
from proxy.semantics.ruleset import parse_rule_files
from proxy.stores.rules import default_rules_dir, load_rules
from proxy.upstream.attempts import address, timeouts_of
from proxy.upstream.session import Timeouts

CONFIG = """
auth: {mode: none}
upstreams:
  azure:
    vendor: azure_openai
    base_url: "https://example.test/openai/deployments/d1?api-version=2024-10-21"
    api_key: "${KEY}"
  main: {vendor: openai, base_url: "https://example.test/v1/", api_key: "${KEY}"}
models:
  one: [{upstream: azure, model: d1}]
  two: [{upstream: main, model: gpt-4o}]
"""


def settings_of(folder: Path, text: str = CONFIG) -> Settings:
    file = folder / "sluice.yaml"
    file.write_text(text)
    return load_config(file, {"KEY": "sk-ours"})


@pytest.mark.clause("C4")
def test_the_rule_file_says_in_which_header_the_key_goes(tmp_path: Path) -> None:
    """Azure wants its key in a header of its own, and the query of its address stays behind the path."""
    made = routes(settings_of(tmp_path), load_rules(default_rules_dir()))

    azure, main = made["one"].upstream, made["two"].upstream
    assert azure.headers["api-key"] == "sk-ours" and "authorization" not in azure.headers
    assert str(address(azure.base, "/chat/completions")) == (
        "https://example.test/openai/deployments/d1/chat/completions?api-version=2024-10-21"
    )
    assert main.headers["authorization"] == "Bearer sk-ours" and "api-key" not in main.headers
    assert str(address(main.base, "/models/a%2Fb:go?alt=sse")) == "https://example.test/v1/models/a%2Fb:go?alt=sse"


@pytest.mark.clause("C4")
def test_a_dialect_that_is_not_built_is_refused_by_name(tmp_path: Path) -> None:
    """An operator's own rule file may name another API family; the start says so instead of sending it nonsense."""
    files = {path.name: path.read_text() for path in default_rules_dir().glob("*.yaml")}
    files["openai.yaml"] = files["openai.yaml"].replace("dialects: [openai,", "dialects: [grpc, openai,")

    with pytest.raises(ConfigError, match=r"upstreams\.main: the dialect grpc is not built, only openai"):
        check_dialects(settings_of(tmp_path), parse_rule_files(files))


FAMILIES = """
auth: {mode: none}
upstreams:
  claude: {vendor: anthropic, base_url: "https://api.example.test/v1", api_key: "${KEY}", unsupported: drop}
  gemini: {vendor: gemini, base_url: "https://example.test/v1beta", api_key: "${KEY}"}
  vertex: {vendor: vertex, base_url: "https://example.test/v1/publishers/google", api_key: "${KEY}"}
  aws: {vendor: bedrock, base_url: "https://bedrock-runtime.eu-west-1.amazonaws.com", api_key: "${PAIR}"}
  aws-bearer: {vendor: bedrock, base_url: "https://bedrock-runtime.eu-west-1.amazonaws.com", api_key: "${KEY}"}
  qianfan: {vendor: baidu_qianfan_v1, base_url: "https://example.test/chat", api_key: "${KEY}"}
  hunyuan: {vendor: tencent_hunyuan, base_url: "https://hunyuan.example.test", api_key: "${PAIR}", region: ap-guangzhou}
  local: {vendor: ollama, base_url: "http://127.0.0.1:11434"}
  chosen: {vendor: openai, dialect: responses, base_url: "https://example.test/v1", api_key: "${KEY}"}
models:
  claude: [{upstream: claude, model: m}]
  gemini: [{upstream: gemini, model: m}]
  vertex: [{upstream: vertex, model: m}]
  aws: [{upstream: aws, model: m}]
  aws-bearer: [{upstream: aws-bearer, model: m}]
  qianfan: [{upstream: qianfan, model: m}]
  hunyuan: [{upstream: hunyuan, model: m}]
  local: [{upstream: local, model: m}]
  chosen: [{upstream: chosen, model: m}]
"""


@pytest.mark.clause("C4", "Q2", "L3")
def test_each_familys_key_goes_where_its_vendor_wants_it(tmp_path: Path) -> None:
    """In a header, in the address, or into a signature; a pair without a signature is a bearer key; and each part of a
    key is struck out of answers."""
    file = tmp_path / "sluice.yaml"
    file.write_text(FAMILIES)
    settings = load_config(file, {"KEY": "sk-ours-1234", "PAIR": "AKIDEXAMPLE:wJalrXUtnFEMI"})
    made = {name: target.upstream for name, target in routes(settings, load_rules(default_rules_dir())).items()}

    assert made["claude"].headers["x-api-key"] == "sk-ours-1234" and made["claude"].drops
    assert made["gemini"].headers["x-goog-api-key"] == "sk-ours-1234" and not made["gemini"].drops
    assert made["vertex"].headers["authorization"] == "Bearer sk-ours-1234"
    assert made["aws"].signer is not None and "authorization" not in made["aws"].headers
    assert made["aws"].secrets == ("AKIDEXAMPLE:wJalrXUtnFEMI", "AKIDEXAMPLE", "wJalrXUtnFEMI")
    assert made["aws-bearer"].signer is None
    assert made["aws-bearer"].headers["authorization"] == "Bearer sk-ours-1234"
    assert made["qianfan"].base.query == {"access_token": "sk-ours-1234"}
    assert "authorization" not in made["qianfan"].headers
    assert made["hunyuan"].signer is not None
    assert made["local"].secrets == () and "authorization" not in made["local"].headers
    assert made["chosen"].dialect.name == "responses"
    assert not any("sk-ours" in repr(settings.upstreams[name]) for name in settings.upstreams)


@pytest.mark.clause("C4")
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("unsupported: maybe", "unsupported"),
        ("region: 'EU West'", "region"),
        ("dialect: gemini", "openai speaks openai, responses, completions, not gemini"),
        ("dialect: openai.embeddings", "not openai.embeddings"),
    ],
)
def test_a_wrong_word_is_refused_at_start(tmp_path: Path, line: str, said: str) -> None:
    """By its place, or by what the vendor speaks."""
    text = CONFIG.replace('api_key: "${KEY}"}\nmodels', f'api_key: "${{KEY}}", {line}}}\nmodels')
    with pytest.raises(ConfigError, match=said):
        check_dialects(settings_of(tmp_path, text), load_rules(default_rules_dir()))


DEADLINES = """
auth: {mode: none}
defaults: {deadlines: {stall: 7}}
upstreams:
  main: {vendor: openai, base_url: "https://example.test/v1", deadlines: {first_byte: 120, idle: 0}}
models:
  模型: [{upstream: main, model: gpt-4o}]
"""


@pytest.mark.clause("C4", "R1", "R2")
def test_a_vendors_deadlines_stand_where_the_configuration_says_none(tmp_path: Path) -> None:
    """Under `defaults:` or on the upstream, also where it says our own default. The rules are those of the moment, so a
    changed file goes for the next attempt."""
    files = {path.name: path.read_text() for path in default_rules_dir().glob("*.yaml")}
    plain = parse_rule_files(files)
    key = "deadlines: {connect: 2, first_byte: 300, stall: 90, idle: 45, total: 3600}\nuse:"
    edited = parse_rule_files({**files, "openai.yaml": files["openai.yaml"].replace("use:", key, 1)})
    upstream = routes(settings_of(tmp_path, DEADLINES), plain)["模型"].upstream

    assert timeouts_of(upstream, plain.profile("openai")) is upstream.timeouts
    assert timeouts_of(upstream, edited.profile("openai")) == Timeouts(2.0, 120.0, 7.0, 0.0, 3600.0, 2.0)
