"""The catalogue: what `sluice probe` asks of a vendor, and what each answer must mean (contract R1, E).

In: a model's name and what the operator allows. Out: `Probe`s with their `Ask`s in canonical form, so that one
catalogue does for every API family. Errors are asked for in two ways or more, as a plain answer and as a stream: what
both answers say is the vendor's, the rest is of one request. Never: I/O, chance, or a character of a real key but for a
prefix that every key of its vendor has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from proxy.canon.request import Message, Request, Text, Tool
from proxy.canon.verdict import ErrorClass
from proxy.learning import damage
from proxy.learning.probes import Ask, Key, Kind, Probe, Until

#: Bounds of a burst: how many requests at all, and how many of them at a time.
MAX_BURST: Final = 1000
#: Tokens of an over-long prompt. Most windows end at 128 000; a refusal costs nothing at any vendor that we know of.
LONG_TOKENS: Final = 140_000
MAX_LONG_TOKENS: Final = 2_500_000
_SHORT_ANSWER: Final = 16  # the least that every family takes
_ANSWER: Final = 400
_LONG_ANSWER: Final = 1600


@dataclass(frozen=True, slots=True)
class Allowed:
    """What the operator allows. `key` is ours, of which only the length and a public prefix are used; "" where the
    upstream has none. `bait` are texts for moderation, none if it may not be tried; `burst` 0 likewise."""

    model: str
    key: str = field(default="", repr=False)
    bait: tuple[str, ...] = ()
    burst: int = 0
    long_tokens: int = LONG_TOKENS


# ---- healthy answers -------------------------------------------------------------------------------------------------

#: Short texts whose letters take one to four bytes, join, combine or run from right to left.
TEXTS: Final[Mapping[str, str]] = {
    "persian": "هر روز صبح کتاب‌ها را می‌خوانم و به پرنده‌ها آب می‌دهم؛ ۱۲۳ دفتر دارم.",
    "chinese": "春天的早晨，我们一起去河边散步，听鸟叫，看花开。今天是三月二十一日。",
    "hindi": "बारिश के बाद क्षितिज पर इंद्रधनुष दिखा, और बच्चों ने ज़ोर से तालियाँ बजाईं।",
    "arabic": "اللُّغَةُ العَرَبِيَّةُ جَمِيلَةٌ، وَفِي المَكْتَبَةِ ٤٥ كِتَابًا جَدِيدًا.",
    "emoji": "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇮🇷🇮🇳🇨🇳 1️⃣ ❤️‍🔥 한글 ไทย é",
    "code": 'def add(a: int, b: int) -> int:\n    """Sum."""\n    return a + b  # O(1)\n',
    "digits": "3.14159265358979 2718281828 1,000,000 0x1F 6.022e23 42 007 -273.15",
}
_REPEAT: Final = "Repeat the text between the lines exactly as it is, and write nothing else.\n---\n{}\n---"
_TIMES: Final = (6, 18)  # the longer prompts, which tell a scale from an offset
_LONG_SCRIPTS: Final = ("chinese", "persian")
_TOOL: Final = Tool(
    "weather",
    "The weather of a city now.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


def _said(model: str, text: str, *, stream: bool, max_tokens: int = _ANSWER) -> Request:
    messages = (Message("user", (Text(text),)),)
    return Request(client="chat", model=model, messages=messages, stream=stream, max_tokens=max_tokens)


def _repeated(model: str, text: str, odd: str, *, stream: bool = True, max_tokens: int = _ANSWER) -> Ask:
    return Ask(_said(model, _REPEAT.format(text), stream=stream, max_tokens=max_tokens), odd, expected=text)


def _answers(model: str) -> tuple[Probe, ...]:
    long = [
        _repeated(model, "\n".join([TEXTS[script]] * times), f"{script}, {times} times", max_tokens=_LONG_ANSWER)
        for script in _LONG_SCRIPTS
        for times in _TIMES
    ]
    counting = _said(model, "Count from 1 to 200 in words.", stream=True, max_tokens=_SHORT_ANSWER)
    repeating = replace(long[0].request, max_tokens=_SHORT_ANSWER)
    weather = _said(model, "What is the weather in تهران now? Call the tool.", stream=True)
    return (
        Probe(
            "plain",
            "a plain answer, and that key and model work",
            Kind.ANSWER,
            (_repeated(model, TEXTS["persian"], "a plain answer", stream=False),),
        ),
        Probe(
            "stream",
            "streams in many scripts: cuts, heartbeats, finish, end mark, usage",
            Kind.ANSWER,
            tuple(_repeated(model, text, f"a stream, {script}") for script, text in TEXTS.items()),
        ),
        Probe("long-stream", "longer streams: usage against our count", Kind.ANSWER, tuple(long)),
        Probe(
            "length",
            "an answer cut short by max_tokens",
            Kind.ANSWER,
            (
                Ask(counting, "a stream that max_tokens ends", needs=("max_tokens",)),
                Ask(repeating, "another stream that max_tokens ends", needs=("max_tokens",)),
            ),
        ),
        Probe(
            "tool",
            "a tool call",
            Kind.ANSWER,
            (Ask(replace(weather, tools=(_TOOL,)), "a stream with a tool call", needs=("tools",)),),
        ),
    )


# ---- refusals --------------------------------------------------------------------------------------------------------

# What stands at the head of every key of its kind, and so is no secret.
_PUBLIC_PREFIX: Final = re.compile(
    r"^(?:sk-(?:proj-|ant-api03-|or-v1-)?|gsk_|xai-|AIza|nvapi-|pplx-|fw_|tgp_v1_|hf_|r8_|csk-|AKIA|LTAI|AKID)"
)
_FILLER: Final = "notAKeyOfAnyone0123456789"


def wrong_keys(key: str) -> tuple[str, ...]:
    """Keys that open nothing, made like `key`: its public prefix and about its length, no other character of it. Their
    lengths differ, so that nothing about them stays the same. A key of two parts stays one."""
    identity, colon, secret = key.partition(":")
    if not colon:
        return (_filled(key, 0), _filled(key, 3), "no-such-key")
    return tuple(f"{_filled(identity, more)}:{_filled(secret, more)}" for more in (0, 3))


def _filled(key: str, more: int) -> str:
    found = _PUBLIC_PREFIX.match(key)
    prefix = found[0] if found is not None else ""
    length = max(12, min(len(key), 64)) + more - len(prefix)
    filler = _FILLER[more:] + _FILLER
    return prefix + (filler * (length // len(filler) + 1))[:length]


def _ways_to_ask(model: str) -> tuple[Request, Request]:
    """The same small question, plain and as a stream."""
    plain = _said(model, "سلام، 你好، नमस्ते 👋", stream=False, max_tokens=_SHORT_ANSWER)
    return plain, replace(plain, stream=True)


def _refusals(allowed: Allowed) -> tuple[Probe, ...]:
    plain, stream = _ways_to_ask(allowed.model)
    # Names that have nothing in common, in case one of them is served.
    names = ("no-such-model-2019", f"{allowed.model}-not-there", "missing.model")
    models = tuple(
        Ask(replace(request, model=name), f"the model {name}", asked=(name,))
        for name, request in zip(names, (plain, stream, plain), strict=True)
    )
    return (
        Probe(
            "unknown-model",
            "a model that is not there",
            Kind.REFUSAL,
            models,
            ErrorClass.MODEL_UNAVAILABLE,
            "model_not_found",
        ),
        Probe(
            "broken-json",
            "a body that is no JSON",
            Kind.REFUSAL,
            (
                Ask(plain, "a body cut in the middle", damage=damage.cut_short),
                Ask(plain, "a body with a comma too many", damage=damage.with_a_comma_too_many),
                Ask(plain, "words in place of a body", damage=damage.words),
            ),
            ErrorClass.INVALID_REQUEST,
            "invalid_request",
        ),
        Probe(
            "missing-field",
            "a body without its messages",
            Kind.REFUSAL,
            (
                Ask(plain, "a body without messages", damage=damage.without_messages),
                Ask(stream, "a stream asked for without messages", damage=damage.without_messages),
                Ask(plain, "an empty object", damage=damage.nothing),
            ),
            ErrorClass.INVALID_REQUEST,
            "invalid_request",
        ),
        Probe(
            "wrong-type",
            "messages of the wrong type",
            Kind.REFUSAL,
            (
                Ask(plain, "a number where messages stand", damage=damage.number_for_messages),
                Ask(stream, "a list of words where messages stand", damage=damage.words_for_messages),
                Ask(plain, "true where messages stand", damage=damage.true_for_messages),
            ),
            ErrorClass.INVALID_REQUEST,
            "invalid_request",
        ),
        Probe(
            "too-long",
            "a prompt longer than the model's window",
            Kind.REFUSAL,
            tuple(_too_long(request, allowed.long_tokens, more) for more, request in enumerate((plain, stream))),
            ErrorClass.INVALID_REQUEST,
            "context_length_exceeded",
            needs_refusal=True,
            also=ErrorClass.RATE_LIMITED,
        ),
    )


def _too_long(request: Request, tokens: int, more: int) -> Ask:
    # A word with its blank is one token in every vocabulary in use.
    text = "again " * (tokens + 500 * more)
    message = Message("user", (Text(text),))
    return Ask(replace(request, messages=(message,)), f"a prompt of some {tokens + 500 * more} tokens")


def _keys(allowed: Allowed) -> tuple[Probe, ...]:
    if not allowed.key:
        return ()
    plain, stream = _ways_to_ask(allowed.model)
    wrong = wrong_keys(allowed.key)
    return (
        Probe(
            "no-key",
            "no key at all",
            Kind.REFUSAL,
            tuple(Ask(request, "no key", key=Key.NONE) for request in (plain, stream, plain)),
            ErrorClass.AUTH_FAILURE,
            "invalid_credential",
        ),
        Probe(
            "wrong-key",
            "keys that open nothing",
            Kind.REFUSAL,
            tuple(
                Ask(request, "a wrong key", key=Key.WRONG, wrong_key=key, asked=(key,))
                for key, request in zip(wrong, (plain, stream, plain), strict=False)
            ),
            ErrorClass.AUTH_FAILURE,
            "invalid_credential",
        ),
    )


#: Texts that the vendors' own pages give as what their moderation finds; nobody and nothing is meant.
BAIT: Final = ("I want to kill them all.", "我要杀了他们所有人。")


def _moderation(allowed: Allowed) -> tuple[Probe, ...]:
    if not allowed.bait:
        return ()
    asks = tuple(
        Ask(_said(allowed.model, text, stream=stream, max_tokens=_SHORT_ANSWER * 4), "a text for moderation to find")
        for text in allowed.bait
        for stream in (False, True)
    )
    about = "a text that moderation should find"
    return (Probe("moderation", about, Kind.REFUSAL, asks, ErrorClass.CONTENT_BLOCKED, "content_filter"),)


def _burst(allowed: Allowed) -> tuple[Probe, ...]:
    if not allowed.burst:
        return ()
    plain, _ = _ways_to_ask(allowed.model)
    asks = (Ask(plain, "one of many at a time"),) * min(allowed.burst, MAX_BURST)
    about = "many at a time, until the rate limit answers"
    return (Probe("burst", about, Kind.REFUSAL, asks, ErrorClass.RATE_LIMITED, "rate_limited", burst=True),)


# ---- what we end -----------------------------------------------------------------------------------------------------


def _ended_by_us(model: str) -> tuple[Probe, ...]:
    text = "\n".join([TEXTS["hindi"]] * 4)
    told = _said(model, _REPEAT.format(text), stream=True, max_tokens=_ANSWER)
    return (
        Probe(
            "deadline",
            "a deadline of ours that is too short",
            Kind.OURS,
            (
                Ask(told, "a deadline that passes before the head", until=Until.HEAD),
                Ask(told, "a deadline that passes in the middle", until=Until.MIDDLE),
            ),
            ErrorClass.UPSTREAM_TIMEOUT,
        ),
        Probe(
            "hang-up",
            "a stream that we leave after its first words",
            Kind.OURS,
            (Ask(told, "we hung up after the first progress", until=Until.PROGRESS),),
        ),
    )


def catalogue(allowed: Allowed) -> tuple[Probe, ...]:
    """All that may be asked, in this order: first what must work, last what may anger a vendor."""
    return (
        *_answers(allowed.model),
        *_ended_by_us(allowed.model),
        *_refusals(allowed),
        *_moderation(allowed),
        *_keys(allowed),
        *_burst(allowed),
    )


#: Every name that `--only` and `--skip` may say: all that is asked where everything is allowed.
NAMES: Final = tuple(probe.name for probe in catalogue(Allowed("m", "k", ("x",), 1, 1)))
