"""What the repository's own recordings show of their vendors' ways: each must say what is odd about it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.dialects.registry import CHAT_DIALECTS
from proxy.learning.ways import Ways, describe, findings, moved_ways, way_changes
from proxy.stores.recordings import Recording, load_recording
from tests.support.cuts import cuts_of
from tests.support.exchanges import exchange, recut
from tests.support.pipelines import RECORDINGS, shipped_rules
from tests.support.strategies import streams

ALL = tuple(sorted(path.relative_to(RECORDINGS).with_suffix("").as_posix() for path in RECORDINGS.glob("*/*.jsonl")))


@cache
def recorded(key: str) -> Recording:
    return load_recording(RECORDINGS / f"{key}.jsonl")


def ways_of(*recordings: Recording) -> Ways:
    return findings(recordings, shipped_rules().profile(recordings[0].vendor))


def signs(ways: Ways) -> dict[tuple[str, str], int]:
    return {(sign.kind, sign.text): sign.seen.count for sign in ways.signs}


def early(ways: Ways) -> list[str]:
    return [told.word for told in ways.finishes if told.early]


def after_finish(ways: Ways) -> list[str]:
    return [kind for kind, _ in ways.end.after_finish]


def usage(ways: Ways) -> tuple[list[str], list[str], str]:
    return [path for path, _ in ways.usage.at], [place for place, _ in ways.usage.when], ways.usage.scope


CUTS: dict[str, Callable[[Ways], object]] = {
    "anthropic/cut-inside-letters": lambda ways: ways.cuts.letters.count >= 4,
    "bedrock/cut-inside-letters": lambda ways: ways.cuts.letters.count >= 7 and ways.cuts.clusters.count >= 1,
    "gemini/cuts-inside-letters": lambda ways: ways.cuts.letters.count >= 5 and ways.cuts.clusters.count == 1,
    "litellm/gzip-body": lambda ways: ways.cuts.reads > 0 and ways.streams == 1,
    "llamacpp/invalid-utf8": lambda ways: ways.cuts.bad_bytes.count == 1 and not ways.cuts.halves,
    "openai/surrogate-halves-in-text": lambda ways: ways.cuts.halves.count == 2,
    "openai/surrogate-halves-in-tool-arguments": lambda ways: ways.cuts.halves.count == 1,
    "deepseek/surrogate-halves-in-reasoning": lambda ways: ways.cuts.halves.count == 1,
    "siliconflow/flags-cut-between-deltas": lambda ways: ways.cuts.clusters.count == 4,
    "zhipu/jamo-and-combining-accents": lambda ways: ways.cuts.clusters.count >= 4,
    "xai/joined-emoji-cut-between-deltas": lambda ways: ways.cuts.clusters.count >= 8,
    "sglang/thai-sign-per-delta": lambda ways: ways.cuts.clusters.count >= 4,
    "vllm/persian-letter-per-delta": lambda ways: ways.cuts.clusters.count == 2,  # after the joiner's letter
    "dashscope/whole-text-each-time": lambda ways: not ways.cuts.clusters and not ways.cuts.halves,
}
SIGNS: dict[str, dict[tuple[str, str], int]] = {
    "deepseek/reasoning-keep-alive": {("comment", "keep-alive"): 4, ("blank line", ""): 2, ("empty event", ""): 1},
    "openrouter/processing-comments": {("comment", "OPENROUTER PROCESSING"): 4},
    "spark/heartbeat-crlf": {("comment", ""): 2},
    "tencent_hunyuan/heartbeat-cr": {("comment", "keep-alive"): 2},
    "anthropic/thinking-pings-and-cache": {("event", "ping"): 2},
    "bedrock/unknown-events": {("event", "heartbeat"): 1},
    "dashscope/status-in-comments": {},  # the status stands in every event
    "qwen_compat/native-field-lines": {},
    "llamacpp/error-field-line": {},  # a line that is no field, and an error
    "openai/responses-plain": {},
}
ENDS: dict[str, Callable[[Ways], object]] = {
    "anthropic/plain": lambda ways: (ways.end.mark, ways.end.word) == ("sent", "message_stop"),
    "anthropic/end-mark-behind-a-cut": lambda ways: ways.end.without_finish.count == 1,
    "dashscope/plain": lambda ways: ways.end.mark == "never",
    "ollama/plain": lambda ways: ways.end.mark == "never",
    "openai/refusal": lambda ways: (ways.end.mark, ways.end.word) == ("sent", "[DONE]"),
    "spark/plain": lambda ways: ways.end.mark == "sent" and ways.end.without_finish.count == 1,
    "one_api/invented-done-after-cut": lambda ways: ways.end.without_finish.count == 1,
    "one_api/no-space-empty-finish-done-twice": lambda ways: [k for k, _ in ways.end.after_mark] == ["the end mark"],
    "vllm/error-then-done": lambda ways: ways.end.after_error.count == 1 and ways.end.mark == "not shown",
    "sglang/abort-error-then-done": lambda ways: ways.end.after_error.count == 1,
    "llamacpp/last-event-without-blank-line": lambda ways: ways.end.mark == "never",
    "together/truncated-clean-eof": lambda ways: ways.end.mark == "not shown" and not ways.finishes,
    "openai/usage-chunk-obfuscation": lambda ways: after_finish(ways)[0] == "usage" and "mod" in after_finish(ways)[1],
    "openrouter/error-after-finish": lambda ways: "an error" in after_finish(ways),
    "one_api/finish-stop-on-every-chunk": lambda ways: early(ways) == ["stop"],
    "gemini/stop-in-every-chunk": lambda ways: early(ways) == ["STOP"],
    "gemini/plain": lambda ways: early(ways) == [] and ways.end.mark == "never",
    "openai/two-choices-interleaved": lambda ways: early(ways) == [],  # one finished while the other spoke
    "minimax/last-event-is-a-whole-message": lambda ways: early(ways) == [],
    "baidu_qianfan_v1/plain": lambda ways: [told.means for told in ways.finishes] == ["stop"],
    "zhipu/network-error-finish": lambda ways: [told.means for told in ways.finishes] == ["error"],
}
TEXTS: dict[str, tuple[str, bool]] = {
    "dashscope/whole-text-each-time": ("cumulative", True),
    "dashscope/translator-repeats-all": ("cumulative", True),
    "dashscope/letters-cut": ("delta", False),
    "minimax/last-event-is-a-whole-message": ("final_repeat", True),
    "minimax/pro-letters-cut": ("final_repeat", True),
    "openai/responses-multibyte-cut": ("final_repeat", True),
    "openai/demo-many-scripts": ("delta", False),
    "ollama/letters-cut": ("delta", False),
    "lmstudio/model-unloaded-midway": ("not shown", False),
}
USAGE: dict[str, tuple[list[str], list[str], str]] = {
    "groq/x-groq-usage": (["x_groq.usage"], ["with the finish"], "final"),
    "moonshot/usage-inside-choice": (["choices[0].usage"], ["with the finish"], "final"),
    "moonshot/usage-in-finish-chunk": (["usage"], ["with the finish"], "final"),
    "siliconflow/usage-on-every-chunk": (["usage"], ["on every event"], "cumulative"),
    "dashscope/status-in-comments": (["usage"], ["on every event"], "cumulative"),
    "openai/usage-chunk-obfuscation": (["usage"], ["after the finish"], "final"),
    "anthropic/plain": (["message.usage", "usage"], ["before the text", "with the finish"], "final"),
    "bedrock/plain": (["usage"], ["after the finish"], "final"),
    "ollama/plain": (["$"], ["with the finish"], "final"),
    "cohere/plain": (["delta.usage"], ["with the finish"], "final"),
    "openai/demo-many-scripts-json": (["usage"], ["in the body"], "final"),
    "azure_openai/content-filter-midway": ([], [], "absent"),
    "together/truncated-clean-eof": ([], [], "not shown"),
}


#: Those that are soon looked at byte by byte.
SHORT = tuple(key for key in ALL if len(recorded(key).body) < 6000)


@pytest.mark.clause("W3")
@pytest.mark.parametrize("key", CUTS)
def test_how_text_is_cut(key: str) -> None:
    """Reads that end inside letters, events inside pairs, bytes that are no UTF-8, events inside clusters."""
    assert CUTS[key](ways_of(recorded(key))), describe(ways_of(recorded(key)))


@pytest.mark.clause("R1")
@pytest.mark.parametrize("key", SIGNS)
def test_signs_of_life(key: str) -> None:
    """Comments, blank lines, empty events and pings; no status, no error and no part of the grammar."""
    assert signs(ways_of(recorded(key))) == SIGNS[key]


@pytest.mark.clause("W5")
@pytest.mark.parametrize("key", ENDS)
def test_how_answers_end(key: str) -> None:
    """The end mark, what stands behind finish and mark, and finishes that are said too early."""
    assert ENDS[key](ways_of(recorded(key))), describe(ways_of(recorded(key)))


@pytest.mark.clause("R1")
@pytest.mark.parametrize("key", TEXTS)
def test_text_mode(key: str) -> None:
    """Increments, or a repetition, and whether the dialect's reader undoes it."""
    text = ways_of(recorded(key)).text
    assert (text.mode, text.is_undone) == TEXTS[key]


@pytest.mark.clause("L2")
@pytest.mark.parametrize("key", USAGE)
def test_where_usage_sits(key: str) -> None:
    """Its path, its place in the stream, and whether the last report counts."""
    assert usage(ways_of(recorded(key))) == USAGE[key]


@pytest.mark.clause("L2")
@pytest.mark.parametrize(
    ("key", "reasoning", "cache"),
    [
        ("xai/reasoning-outside-completion", "outside", "not shown"),
        ("gemini/thoughts-and-seal", "outside", "not shown"),
        ("deepseek/reasoning-keep-alive", "inside", "inside"),
        ("dashscope/reasoning", "inside", "not shown"),
        ("bedrock/reasoning-sealed", "absent", "outside"),
        ("anthropic/thinking-pings-and-cache", "absent", "outside"),
        ("openrouter/processing-comments", "absent", "not shown"),  # reported as 0 though it flowed
        ("openai/refusal", "not shown", "not shown"),
    ],
)
def test_what_usage_includes(key: str, reasoning: str, cache: str) -> None:
    """Reasoning in the output, cached tokens in the input, by the vendor's own numbers."""
    ways = ways_of(recorded(key)).usage
    assert (ways.reasoning, ways.cache) == (reasoning, cache)
    assert ways.reasoning_read and ways.cache_read


@pytest.mark.clause("R1")
@pytest.mark.parametrize("key", ALL)
def test_every_recording_can_be_looked_at(key: str) -> None:
    """Findings are JSON, can be told in lines, equal themselves, and one answer proposes next to nothing."""
    recording = recorded(key)
    ways = ways_of(recording)
    assert json.loads(json.dumps(asdict(ways)))["vendor"] == recording.vendor
    assert all(line and "\n" not in line for line in describe(ways))
    assert moved_ways(ways, ways) == ()
    assert way_changes(shipped_rules().profile(recording.vendor), ways) == []


@pytest.mark.clause("R1")
@pytest.mark.parametrize("vendor", sorted({key.partition("/")[0] for key in ALL}))
def test_all_recordings_of_a_vendor_propose_nothing_but_an_end_mark(vendor: str) -> None:
    """The shipped files know the ways of their vendors."""
    profile = shipped_rules().profile(vendor)
    every = [recorded(key) for key in ALL if key.startswith(f"{vendor}/")]
    usual = [each for each in every if (each.dialect or profile.dialect) == profile.dialect]
    assert {change.key for change in way_changes(profile, findings(usual, profile))} <= {"end_mark"}


@pytest.mark.clause("W2")
@given(data=st.data())
def test_cuts_of_reads_change_nothing_else(data: st.DataObject) -> None:
    """However the bytes are cut into reads, all that is said of events and texts is the same."""
    recording = recorded(data.draw(st.sampled_from(SHORT)))
    again = recut(recording, data.draw(cuts_of(recording.body)))
    before, after = _without_reads(ways_of(recording)), _without_reads(ways_of(again))
    assert before == after


def _without_reads(ways: Ways) -> dict[str, object]:
    """All but what is said of reads and moments."""
    told = asdict(ways)
    told["cuts"] = {name: value for name, value in told["cuts"].items() if name not in ("reads", "letters")}
    told["signs"] = [{**sign, "every_s": None} for sign in told["signs"]]
    return told


@pytest.mark.clause("W2")
@given(body=streams(), dialect=st.sampled_from(sorted(CHAT_DIALECTS)), data=st.data())
def test_any_bytes_can_be_looked_at(body: bytes, dialect: str, data: st.DataObject) -> None:
    """Whatever a vendor of whichever family sends, it is told in lines, and the same of any cuts."""
    recording = replace(recut(exchange([]), [body]), dialect=dialect)
    ways = ways_of(recording)
    assert all("\n" not in line for line in describe(ways))
    assert moved_ways(ways, ways) == ()
    assert _without_reads(ways_of(recut(recording, data.draw(cuts_of(body))))) == _without_reads(ways)
