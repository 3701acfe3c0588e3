"""The ways of a vendor that nobody knows: what its answers show must be what its seed hides."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Final

import pytest

from proxy.learning.ways import findings, moved_ways, way_changes
from proxy.metering.prompt import read_prompt
from proxy.metering.tokens import load_counter
from proxy.semantics.paths import parse_path
from proxy.semantics.rule import StreamWays, UsageWays, VendorProfile
from proxy.stores.difficult import DifficultVendor
from proxy.stores.difficult_answers import Asked
from proxy.stores.difficult_habits import Ways as Hidden
from proxy.stores.recordings import Recording
from tests.support.pipelines import shipped_rules

SEEDS: Final = range(24)
PROFILE: Final = shipped_rules().profile("openai_compatible")
#: Prompt, limit, and whether a stream is wanted.
ASKED: Final = (
    ("سلام", None, True),
    ("یک جمله دربارهٔ باران بنویس و بگو چرا مردم آن را دوست دارند.", None, True),
    ("写一句关于雨的话，再说说为什么人们喜欢它；最后写一首四行的小诗，每行七个字。", None, True),
    ("बारिश के बारे में एक वाक्य लिखो।", None, True),
    ("Write one sentence about rain. " * 4, None, True),
    ("اكتب جملة واحدة عن المطر ثم أخرى عن الثلج 🌧️. " * 2, None, True),
    ("بشمار", 8, True),
    ("数到二十", 8, True),
    ("안녕", None, False),
)
READ_PLACES: Final = (("usage",), ("choices", "0", "usage"))


@cache
def answers(seed: int, turn: int = 0) -> tuple[Recording, ...]:
    """What the vendor answers, each time in other words and cuts."""
    vendor, counter = DifficultVendor(seed), load_counter()
    told = []
    for number, (prompt, limit, stream) in enumerate(ASKED):
        body: dict[str, object] = {"model": "fine", "messages": [{"role": "user", "content": prompt}], "stream": stream}
        if limit is not None:
            body["max_tokens"] = limit
        answer = vendor.serve(Asked("fine", stream, read_prompt(body).text, limit), counter, number + 100 * turn)
        told.append(replace(answer, name=f"probe-{number}", request={**answer.request, "body": body}))
    return tuple(told)


def hidden(seed: int) -> Hidden:
    return DifficultVendor(seed).habits.ways


def wanted(ways: Hidden) -> dict[str, object]:
    """What a rule file must say of these ways beyond what is usual; signs of life apart."""
    told: dict[str, object] = {"end_mark": "sent" if ways.end_mark else "never"}
    words = {word: means for word, means in ((ways.stop, "stop"), (ways.length, "length")) if word != means}
    if words:
        told["finish_reasons"] = words
    if ways.text_mode != "delta":
        told["text_mode"] = ways.text_mode
    if ways.usage_scope == "absent":
        told["usage"] = {"scope": "absent"}
    elif ways.usage_at not in READ_PLACES:
        told["usage"] = {"at": [".".join(ways.usage_at)]}
    return told


def taught(ways: Hidden) -> VendorProfile:
    """The profile of a rule file that says so."""
    told = wanted(ways)
    at = () if ways.usage_scope == "absent" or ways.usage_at in READ_PLACES else (parse_path(".".join(ways.usage_at)),)
    known = StreamWays(
        end_mark="sent" if ways.end_mark else "never",
        text_mode=ways.text_mode,  # type: ignore[arg-type]  # one of the three
        usage=UsageWays(at, scope="absent" if ways.usage_scope == "absent" else None),
    )
    words = told.get("finish_reasons", {})
    assert isinstance(words, dict)
    return replace(PROFILE, ways=known, finish_reasons={**PROFILE.finish_reasons, **words})


@pytest.mark.clause("R1")
@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_hidden_is_found(seed: int) -> None:
    """Text mode, end mark, finish words, the place of usage, and its scale; and every sign of life is seen."""
    ways = hidden(seed)
    found = findings(answers(seed), PROFILE)
    proposed = {change.key: change.value for change in way_changes(PROFILE, found)}
    assert bool(proposed.pop("heartbeats", None)) is (ways.heartbeat == "data: ~still here~")
    assert proposed == wanted(ways)
    assert bool(found.signs) is bool(ways.heartbeat)
    if ways.usage_scope != "absent":
        assert found.usage.output.slope == pytest.approx(ways.slope, abs=0.06)
        assert found.usage.input.slope == pytest.approx(ways.slope, abs=0.08)
        assert found.usage.input.offset == pytest.approx(ways.offset, abs=3)


@pytest.mark.clause("R1")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_second_look_changes_nothing(seed: int) -> None:
    """Other words and other cuts of the same vendor move nothing, all together or one by one; and what the file says
    by now is not proposed again."""
    profile = taught(hidden(seed))
    before, after = answers(seed), answers(seed, turn=1)
    assert moved_ways(findings(before, profile), findings(after, profile)) == ()
    for one, other in zip(before, after, strict=True):
        assert moved_ways(findings([one], profile), findings([other], profile)) == ()
    assert {change.key for change in way_changes(profile, findings(after, profile))} <= {"heartbeats"}
