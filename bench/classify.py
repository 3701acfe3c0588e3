"""What judging an error costs, by how far down the rules the one that decides stands: CPU, beside one healthy event.

    .venv/bin/python -m bench.classify [--rounds N]

Every recorded error is judged by the rules of each of a few vendors; the answers are those that the first, the middle
and the last of the deciding rules take, and one that no rule knows. Rounds are interleaved, medians told, each figure
also as a ratio to one paced text event of chat completions through the pipeline, in the same run. Beside the table:
every recorded and every unseen answer by its own vendor's rules, and hostile messages of 2,000 characters that say the
rules' own words over and over. A healthy stream asks the rules nothing; an error asks them once per attempt.
"""

from __future__ import annotations

import argparse
import random
import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from bench.dialects import EVENTS, openai, run
from proxy.canon.verdict import Observation, Phase
from proxy.learning.replaying import WALL, replay
from proxy.pipeline.values import Asked, Setup
from proxy.semantics.classifier import classify
from proxy.semantics.rule import RuleSet, VendorProfile
from proxy.stores.recordings import find_recordings
from proxy.stores.rules import default_rules_dir, load_rules
from tests.support.error_rows import unseen_rows

VENDORS = ("openai", "anthropic", "gemini", "bedrock", "zhipu", "deepseek", "openai_compatible")
REPEATS = 50
PLACES = ("first", "middle", "last", "unmapped")
HOSTILE = 500
HOSTILE_CHARS = 2_000


def errors_of(rules: RuleSet, folder: Path) -> list[Observation]:
    """What the rules were asked about, over all recordings."""
    facts = (replay(rules.profile(one.vendor), one) for one in find_recordings([folder]) if one.vendor in rules.vendors)
    return [each.observation for each in facts if each.observation is not None]


def hostile(rules: RuleSet) -> list[Observation]:
    """Messages of a few words of the rules, again and again, some with many of the others in front."""
    patterns = [pattern.pattern.lower() for rule in rules.all_rules() for _, pattern in rule.when.match]
    words = sorted({word for pattern in patterns for word in re.findall(r"[^\W\d_]{2,}", pattern)})
    dice = random.Random(7)

    def message() -> str:
        again = dice.sample(words, dice.choice((1, 2, 3, 5, 10, 20)))
        before = dice.sample(words, dice.choice((0, 10, 50)))
        return " ".join(before + dice.choices(again, k=HOSTILE_CHARS))[:HOSTILE_CHARS]

    def answer() -> Observation:
        return Observation("", Phase.HEAD, dice.choice((200, 400, 429, 500)), payload={"error": {"message": message()}})

    return [answer() for _ in range(HOSTILE)]


def chosen(profile: VendorProfile, errors: list[Observation]) -> dict[str, tuple[Observation, int]]:
    """An answer for each place, with how many rules are tried for it."""
    tried = {rule.id: number for number, rule in enumerate(profile.rules, start=1)}
    found: dict[int, Observation] = {}
    unmapped: Observation | None = None
    for seen in errors:
        verdict = classify(profile, seen, WALL)
        if verdict.rule_id is None:
            unmapped = unmapped or seen
        else:
            found.setdefault(tried[verdict.rule_id], seen)
    assert unmapped is not None, "no recorded error is unknown to this vendor"
    depths = sorted(found)
    places = dict(zip(PLACES, (depths[0], depths[len(depths) // 2], depths[-1]), strict=False))
    return {name: (found[depth], depth) for name, depth in places.items()} | {"unmapped": (unmapped, len(tried))}


def timed(action: Callable[[], object], repeats: int) -> float:
    """CPU in microseconds, once."""
    began = time.process_time_ns()
    for _ in range(repeats):
        action()
    return (time.process_time_ns() - began) / repeats / 1000


def healthy(profile: VendorProfile) -> Callable[[], object]:
    """A stream of chat completions, one event per read."""
    setup = Setup(profile, "main", "m", "trace", "5eed" * 6, WALL)
    events = openai()
    return lambda: run(setup, Asked(True), "text/event-stream", events)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    rules = load_rules(default_rules_dir())
    errors = errors_of(rules, Path(__file__).resolve().parents[1] / "recordings")
    asked = {vendor: chosen(rules.profile(vendor), errors) for vendor in VENDORS}
    stream = healthy(rules.profile("openai"))
    event: list[float] = []
    costs: dict[tuple[str, str], list[float]] = {}
    for _ in range(rounds):
        event.append(timed(stream, 4) / EVENTS)
        for vendor, answers in asked.items():
            profile = rules.profile(vendor)
            for place, (seen, _tried) in answers.items():
                judge = timed(lambda profile=profile, seen=seen: classify(profile, seen, WALL), REPEATS)  # type: ignore[misc]
                costs.setdefault((vendor, place), []).append(judge)
    own = [(rules.profile(one.vendor), one) for one in (*errors, *(row.seen for row in unseen_rows()))]
    shifted = [(rules.profile(VENDORS[number % len(VENDORS)]), one) for number, one in enumerate(hostile(rules))]
    for name, judged in (("answers by their own rules", own), ("hostile messages", shifted)):
        spread(name, sorted(quickest(*each, rounds) for each in judged), statistics.median(event))
    told(asked, {key: statistics.median(each) for key, each in costs.items()}, statistics.median(event))


def quickest(profile: VendorProfile, seen: Observation, rounds: int) -> float:
    """In microseconds; the least of the rounds, since one answer alone is soon judged and soon disturbed."""
    return min(timed(lambda: classify(profile, seen, WALL), 1) for _ in range(rounds))


def spread(name: str, costs: list[float], event: float) -> None:
    places = {"median": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    cells = {place: costs[min(int(len(costs) * share), len(costs) - 1)] for place, share in places.items()}
    shown = ", ".join(f"{place} {cost:.0f} us ({cost / event:.0f})" for place, cost in cells.items())
    print(f"{len(costs)} {name}: {shown}")


def told(
    asked: dict[str, dict[str, tuple[Observation, int]]], costs: dict[tuple[str, str], float], event: float
) -> None:
    print(f"one healthy event: {event:.2f} us")
    print("| vendor | rules | " + " | ".join(f"{place}, us (events)" for place in PLACES) + " |")
    print("|---|--:|" + "--:|" * len(PLACES))
    for vendor, answers in asked.items():
        cells = [f"{costs[vendor, place]:.0f} ({costs[vendor, place] / event:.0f})" for place in PLACES]
        print(f"| {vendor} | {answers['unmapped'][1]} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
