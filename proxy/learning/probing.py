"""A probe's run: every ask of a plan in turn, politely, and what each answer means by the present rules (R1, C3).

In: a plan and an `Asker`. Out: a `Run`: what was heard, and why it ended early, if it did. One request at a time, with
a pause between them; a vendor that limits us is asked something healthy before its answer is believed, for "slow down"
is no answer to a wrong model's name, and waited for as long as it says, within bounds. Only a burst asks many at a
time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from proxy.canon.ending import Ending, Stop
from proxy.canon.verdict import ErrorClass, Verdict
from proxy.learning.asking import Asker, Heard, name_of
from proxy.learning.plan import SPARE, Plan, is_doubted
from proxy.learning.probes import Ask, Kind, Probe, Until
from proxy.learning.replaying import replay
from proxy.pipeline.values import Facts
from proxy.semantics import verdicts
from proxy.semantics.classifier import classify
from proxy.semantics.rule import VendorProfile

#: Requests of a burst at one time; and how many refusals end it.
BURST_AT_ONCE: Final = 16
ENOUGH_LIMITS: Final = 4
#: How often a limit is waited for with one ask, and for how long where the vendor does not say.
_WAITS: Final = 2
_BACKOFF_S: Final = 2.0
#: What a vendor that has no time says by status, to a question that is as it should be.
_BUSY: Final = (429, 503, 529)


@dataclass(frozen=True, slots=True)
class Manners:
    """`pause_s` stands between two requests, `max_wait_s` is the longest that a vendor is waited for at once, `total_s`
    bounds the whole run."""

    pause_s: float = 0.2
    max_wait_s: float = 60.0
    total_s: float = 1800.0


@dataclass(slots=True)
class Run:
    """`stopped` says why not everything was asked, None if it was. `sent` counts all requests."""

    heard: list[Heard] = field(default_factory=list)
    stopped: str | None = None
    sent: int = 0


@dataclass(frozen=True, slots=True)
class Meaning:
    """What became of an exchange by the rules. `error_class` is None for an answer, and for what we ended; `mapped` is
    False where only the fallback table knew it."""

    facts: Facts | None
    ending: str
    error_class: ErrorClass | None
    code: str | None
    rule_id: str | None
    mapped: bool
    verdict: Verdict | None = None

    @property
    def refused(self) -> bool:
        """Did the vendor itself say an error?"""
        return self.facts is not None and self.facts.observation is not None

    @property
    def answered(self) -> bool:
        return self.facts is not None and not self.refused and self.facts.first_progress_at is not None


def meaning_of(profile: VendorProfile, heard: Heard) -> Meaning:
    """By these rules, which need not be those under which it was asked."""
    if heard.recording is None:
        verdict = verdicts.of_stop(heard.stop, None)
        return Meaning(None, heard.stop.value, verdict.error_class, verdict.code, None, True, verdict)
    facts = replay(profile, heard.recording)
    told = classify(profile, facts.observation, time.time()) if facts.observation is not None else None
    if heard.stop is Stop.GONE:
        return Meaning(facts, Ending.CLIENT_GONE.value, None, None, None, True)
    assert facts.ending is not None, "a replay ends"
    error_class = ErrorClass(facts.error_class) if facts.error_class is not None else None
    return Meaning(facts, facts.ending.value, error_class, facts.error_code, facts.rule_id, not facts.unmapped, told)


Progress = Callable[[str], None]


class Prober:
    """Runs one plan. `tell` is called before each request with what is being asked."""

    def __init__(self, asker: Asker, profile: VendorProfile, manners: Manners, tell: Progress) -> None:
        self._asker, self._profile, self._manners, self._tell = asker, profile, manners, tell
        self._run = Run()
        self._spare = SPARE

    async def run(self, plan: Plan) -> Run:
        """Ask everything, or as much as the vendor and the bounds allow."""
        run = self._run
        try:
            async with asyncio.timeout(self._manners.total_s):
                for item in plan.items:
                    await self._probe(item.probe)
                    if run.stopped is not None:
                        break
        except TimeoutError:
            run.stopped = f"the probe was not done after {self._manners.total_s:g} seconds"
        run.sent = self._asker.sent
        return run

    async def _probe(self, probe: Probe) -> None:
        if probe.burst:
            self._run.heard += await self._burst(probe)
            return
        asked: list[Heard] = []
        for number, ask in enumerate(probe.asks, start=1):
            self._tell(f"{probe.name}: {ask.odd}")
            heard = await self._ask(probe, number, ask)
            if heard is None:
                break
            if probe.name == "plain" and (reason := self._unhealthy(heard)) is not None:
                self._run.stopped = reason  # and its answer proves nothing
                return
            asked.append(heard)
            if probe.needs_refusal and not self._meaning(heard).refused:
                break
        is_news = is_doubted(probe) and any(self._is_news(one) for one in asked)
        if is_news and self._run.stopped is None and not await self._works():
            self._run.stopped = (
                f"after {probe.name} a healthy request was refused too: what was said to it is not believed"
            )
            return
        self._run.heard += asked

    def _is_news(self, heard: Heard) -> bool:
        """A refusal of which no rule knows that it is what was asked for: a rule would be made of it."""
        told = self._meaning(heard)
        return told.refused and not (told.mapped and told.error_class in (heard.probe.wanted, heard.probe.also))

    def _meaning(self, heard: Heard) -> Meaning:
        return meaning_of(self._profile, heard)

    async def _ask(self, probe: Probe, number: int, ask: Ask) -> Heard | None:
        """The answer that can be believed; None if there is none, and the run must stop."""
        heard = await self._send(probe, number, ask)
        waits = 0
        while (wait_s := self._limited(probe, heard, waits + 1)) is not None:
            if probe.name != "plain" and self._take_spare() and await self._works():
                # Not limited at all, then, or not any more: what it says now is its answer.
                return await self._send(probe, number, ask) if self._take_spare() else None
            if wait_s > self._manners.max_wait_s:
                self._run.stopped = f"the account is limited for {wait_s:.0f} seconds; try again later"
            elif waits == _WAITS:
                self._run.stopped = "the account is limited; try again later, or with a longer --pause"
            if self._run.stopped is not None or not self._take_spare():
                return None
            waits += 1
            await asyncio.sleep(wait_s)
            heard = await self._send(probe, number, ask)
        return heard

    def _take_spare(self) -> bool:
        """May one more request go out than was planned?"""
        if not self._spare:
            self._run.stopped = f"limits answered more than {SPARE} requests; try again later, or with a longer --pause"
            return False
        self._spare -= 1
        return True

    async def _send(self, probe: Probe, number: int, ask: Ask) -> Heard:
        if self._asker.sent:
            await asyncio.sleep(self._manners.pause_s)
        return await self._asker.ask(probe, number, ask)

    async def _works(self) -> bool:
        """Does the vendor answer something healthy now?"""
        first = self._run.heard[0]
        return self._meaning(await self._send(first.probe, first.number, first.ask)).answered

    def _limited(self, probe: Probe, heard: Heard, attempt: int) -> float | None:
        """Seconds to wait, where a limit seems to have answered in place of what was asked."""
        if heard.ask.until is not Until.END or probe.wanted is ErrorClass.RATE_LIMITED:
            return None
        told = self._meaning(heard)
        if told.verdict is None or heard.recording is None or not told.refused:
            return None
        is_limit = told.error_class is ErrorClass.RATE_LIMITED and told.mapped
        if probe.kind is Kind.ANSWER:
            is_limit = told.error_class is ErrorClass.RATE_LIMITED or heard.recording.status in _BUSY
        if not is_limit:
            return None
        wait_s = told.verdict.retry_after_s
        return wait_s if wait_s is not None else _BACKOFF_S * attempt

    def _unhealthy(self, heard: Heard) -> str | None:
        """Why nothing can be learned: the first healthy question was not answered."""
        told = self._meaning(heard)
        if told.answered:
            return None
        if heard.recording is None:
            return f"the vendor gave no answer: {told.code}"
        said = _said(told.verdict, heard)
        if told.error_class is ErrorClass.AUTH_FAILURE:
            return f"the vendor refuses the configured key: {said}"
        if told.error_class is ErrorClass.MODEL_UNAVAILABLE and told.mapped:
            return f"the model {heard.ask.request.model!r} gives no answer, name another with --model: {said}"
        return f"a healthy request was not answered: {said}"

    async def _burst(self, probe: Probe) -> list[Heard]:
        """The first refusals, or the last answer if none came."""
        refused: list[Heard] = []
        others: list[Heard] = []
        left = iter(probe.asks)

        async def ask_on() -> None:
            for ask in left:
                if len(refused) >= ENOUGH_LIMITS:
                    return
                self._tell(f"{probe.name}: {ask.odd}")
                heard = await self._asker.ask(probe, len(refused) + 1, ask)
                (refused if self._meaning(heard).refused else others).append(heard)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(BURST_AT_ONCE, len(probe.asks))):
                _ = group.create_task(ask_on())
        found = [renumbered(one, number) for number, one in enumerate(refused[:ENOUGH_LIMITS], start=1)]
        return found or others[-1:]


def renumbered(heard: Heard, number: int) -> Heard:
    """The same as the `number`th of its probe."""
    if heard.recording is None:
        return replace(heard, number=number)
    name = name_of(heard.probe.name, number)
    recording = replace(heard.recording, name=name, path=heard.recording.path.with_name(f"{name}.jsonl"))
    return replace(heard, number=number, recording=recording)


def _said(verdict: Verdict | None, heard: Heard) -> str:
    """What the vendor said, on one line."""
    status = heard.recording.status if heard.recording is not None else None
    if verdict is None:
        return f"{status}, and no text came"
    words = [str(status), *filter(None, (verdict.vendor_code, verdict.vendor_message))]
    return " ".join(words)[:300]
