"""The composition root: what settings and rules become, and what is refused before anything is opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.app import check_dialects, routes
from proxy.config import Settings, load_config
from proxy.errors import ConfigError
from proxy.semantics.ruleset import parse_rule_files
from proxy.stores.rules import default_rules_dir, load_rules
from proxy.upstream.attempts import address

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
