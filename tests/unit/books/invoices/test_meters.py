"""Meters of clouds, as their price lists name them: what they count, and of which model (contract C3)."""

from __future__ import annotations

import pytest

from proxy.books.invoice import PartKind
from proxy.books.invoices.meters import aws_meter, azure_meter, google_meter, unit_of

pytestmark = pytest.mark.clause("C3")
INPUT, READ, WRITE, OUTPUT, OTHER = (
    PartKind.INPUT,
    PartKind.CACHE_READ,
    PartKind.CACHE_WRITE,
    PartKind.OUTPUT,
    PartKind.OTHER,
)


@pytest.mark.parametrize(
    ("meter", "product", "kind", "model", "tier"),
    [
        ("gpt 4o 0806 Inp glbl Tokens", "Azure OpenAI", INPUT, "gpt-4o-0806", None),
        ("gpt 4o 1120 cached Inp glbl Tokens", "Azure OpenAI", READ, "gpt-4o-1120", None),
        ("gpt-4o-mini-0718-Outp-regnl Tokens", "Azure OpenAI", OUTPUT, "gpt-4o-mini-0718", None),
        ("GPT 5 Mini cchd Inpt Glbl 1M Tokens", "Azure OpenAI GPT5", READ, "gpt-5-mini", None),
        ("GPT 5 outpt Glbl 1M Tokens", "Azure OpenAI GPT5", OUTPUT, "gpt-5", None),
        ("GPT 5 Batch Inpt Glbl 1M Tokens", "Azure OpenAI GPT5", INPUT, "gpt-5", "batch"),
        ("5.4 cd inp Gl 1M Tokens", "Azure OpenAI GPT5", READ, "gpt-5.4", None),
        ("5.4 pp opt Dz 1M Tokens", "Azure OpenAI GPT5", OUTPUT, "gpt-5.4", "priority"),
        ("5.5 LongCo opt Gl 1M Tokens", "Azure OpenAI GPT5", OUTPUT, "gpt-5.5", "long context"),
        ("o3 0416 Inp glbl Tokens", "Azure OpenAI Reasoning", INPUT, "o3-0416", None),
        ("Grok 4.1 Inp DZone Tokens", "Azure Grok Models", INPUT, "grok-4.1", None),
        ("V4 Pro Inp glbl Tokens", "Azure Deepseek Models", INPUT, "deepseek-v4-pro", None),
        ("Phi-4-Input Tokens", "Azure Phi Models", INPUT, "phi-4", None),
        ("ft gpt4o hosting", "Azure OpenAI", OTHER, None, None),
        ("Standard Text Records", "Azure Language", OTHER, None, None),
    ],
)
def test_azure(meter: str, product: str, kind: PartKind, model: str | None, tier: str | None) -> None:
    """Abbreviations of every generation; a product names the maker where the meter leaves it out."""
    found = azure_meter(meter, product)
    assert (found.kind, found.model, found.tier) == (kind, model, tier)


@pytest.mark.parametrize(
    ("sku", "kind", "model", "tier"),
    [
        ("Generate content input token count gemini 2.5 flash short input text", INPUT, "gemini-2.5-flash", None),
        (
            "Generate content output token count gemini 2.5 flash lite short input text",
            OUTPUT,
            "gemini-2.5-flash-lite",
            None,
        ),
        (
            "Generate content cached input token count gemini 2.5 pro long input text",
            READ,
            "gemini-2.5-pro",
            "long context",
        ),
        ("Gemini 2.5 Pro Thinking Text Output - Predictions", OUTPUT, "gemini-2.5-pro", None),
        ("Generate content input token count gemini 3 flash text flex", INPUT, "gemini-3-flash", "flex"),
        (
            "Generate content input token count gemini 3.1 flash lite preview text",
            INPUT,
            "gemini-3.1-flash-lite-preview",
            None,
        ),
        ("Generate_content image output token count for Gemini 3 Pro Image", OUTPUT, "gemini-3-pro-image", None),
        ("Gemini 2.5 Flash Global Text Input Caching", READ, "gemini-2.5-flash", None),
        ("Gemini 2.5 Flash Context caching storage", OTHER, None, None),
        ("Claude Sonnet 4.5 Input Tokens", INPUT, "claude-sonnet-4.5", None),
        ("Claude 3.5 Sonnet Output Tokens - Batch", OUTPUT, "claude-3.5-sonnet", "batch"),
        (
            "Cloud Vertex AI Model as a Service GLM-5.2 Input",
            INPUT,
            "Cloud Vertex AI Model as a Service GLM-5.2 Input",
            None,
        ),
        ("Grounding with Google Search", OTHER, None, None),
    ],
)
def test_google(sku: str, kind: PartKind, model: str | None, tier: str | None) -> None:
    """A SKU of an output names the length of its input; one whose model is not known keeps its words."""
    found = google_meter(sku)
    assert (found.kind, found.model, found.tier) == (kind, model, tier)


@pytest.mark.parametrize(
    ("usage_type", "product", "kind", "model", "unit", "tier"),
    [
        ("USE1-Claude4.5Sonnet-input-tokens", "", INPUT, "claude-sonnet-4-5", 1_000, None),
        ("APN1-Claude3.5Sonnet-output-tokens", "", OUTPUT, "Claude3.5Sonnet", 1_000, None),
        ("USE1-Claude4Opus-cache-read-input-token-count-cross-region-global", "", READ, "claude-opus-4", 1_000, None),
        ("USW2-Claude4.5Haiku-cache-write-input-token-count", "", WRITE, "claude-haiku-4-5", 1_000, None),
        ("USE1-Nova2.0Lite-output-tokens-flex-cross-region-global", "", OUTPUT, "Nova2Lite", 1_000, "flex"),
        ("USE1-Llama3-3-70B-input-tokens-batch", "", INPUT, "Llama3-3-70B", 1_000, "batch"),
        (
            "USW2-anthropic.claude-opus-4-8-mantle-input-tokens-global-standard",
            "",
            INPUT,
            "anthropic.claude-opus-4-8",
            1_000,
            None,
        ),
        (
            "USE1-MP:USE1_InputTokenCount-Units",
            "Claude Sonnet 4.5 (Amazon Bedrock Edition)",
            INPUT,
            "Claude Sonnet 4.5",
            1_000_000,
            None,
        ),
        (
            "USE1-MP:USE1_CacheReadInputTokenCount_Global-Units",
            "Claude Haiku 4.5 (Amazon Bedrock Edition)",
            READ,
            "Claude Haiku 4.5",
            1_000_000,
            None,
        ),
        (
            "USE1-MP:USE1_CacheWriteInputTokenCount-Units",
            "Claude Haiku 4.5 (Amazon Bedrock Edition)",
            WRITE,
            "Claude Haiku 4.5",
            1_000_000,
            None,
        ),
        (
            "USE1_output_tokens_global_standard-Units",
            "Claude Opus 5 (Amazon Bedrock Edition)",
            OUTPUT,
            "Claude Opus 5",
            1_000_000,
            None,
        ),
        ("USE1-Guardrail-ContentPolicyUnitsConsumed", "", OTHER, None, 1, None),
        ("USE1-BoxUsage:t3.micro", "", OTHER, None, 1, None),
    ],
)
def test_aws(usage_type: str, product: str, kind: PartKind, model: str | None, unit: int, tier: str | None) -> None:
    """Usage types name the model in one word; what the marketplace sells is named by its product, in millions."""
    found = aws_meter(usage_type, product)
    assert (found.meter.kind, found.meter.model, found.unit, found.meter.tier) == (kind, model, unit, tier)


@pytest.mark.parametrize(
    ("words", "unit"),
    [
        ("1K", 1_000),
        ("1M", 1_000_000),
        ("1000", 1_000),
        ("1K tokens", 1_000),
        ("1M Tokens", 1_000_000),
        ("100 K", 100_000),
        ("1000 count", 1_000),
        ("count", 1),
        ("Tokens", 1),
        ("1 Hour", 1),
        ("1", 1),
        ("", 1),
        (None, 1),
    ],
)
def test_units(words: str | None, unit: int) -> None:
    """A unit that says no multiple is one."""
    assert unit_of(words) == unit
