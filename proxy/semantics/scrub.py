"""What a vendor wrote, made fit to be shown to a caller: keys, addresses and quoted input taken out, length bounded.

In goes the vendor's text, out comes one line. It takes out what looks like a credential, an address (URLs, hosts, IP
addresses, ports) and long quotations, because some vendors repeat the caller's input in their refusals. What it puts in
place is in square brackets. It never raises. Contract clauses Q2, L3 and E.
"""

from __future__ import annotations

import re

from proxy.semantics.sieve import Sieve, fold

MAX_CHARS = 400
# A vendor may send a megabyte as its message: nothing behind this many characters is looked at.
MAX_INPUT = 2000

_TLD = (
    "com|net|org|io|ai|cn|dev|app|cloud|co|us|eu|de|fr|in|jp|kr|me|tech|xyz|site|info|biz|top|so|run|"
    "internal|local|lan|svc|cluster|localdomain|invalid|example|test"
)
_REPLACEMENTS: tuple[tuple[re.Pattern[str], str], ...] = (
    # What validators say about the input they refused: the input itself is the caller's prompt.
    (re.compile(r"input_value=.*?(?=, input_type|$)", re.S), "input_value=[…]"),
    (re.compile(r"(['\"])[^'\"\n]{81,}\1"), r"\1[…]\1"),
    (re.compile(r"\b(?:bearer|basic)\s+[\w\-.~+/=]{6,}", re.I), "[key]"),
    (re.compile(r"\beyJ[\w-]{8,}(?:\.[\w-]+){0,2}"), "[key]"),
    (
        re.compile(r"\b(?:sk|pk|rk|ak|hf|gsk|xai|csk|nvapi|pplx|fw|tgp|r8|key|api[_-]?key)[-_][\w\-.*…]{3,}", re.I),
        "[key]",
    ),
    (re.compile(r"\b(?:AIza|AKIA|ASIA|LTAI|ya29\.)[\w\-.]{6,}"), "[key]"),
    (
        re.compile(
            r"((?:api[_ -]?key|access[_ -]?token|token|secret|password|passwd|signature|credential|authorization|key)"
            r"\s*[=:]\s*)(?!\[)(?:['\"]?)[\w\-.*/+~]{4,}['\"]?",
            re.I,
        ),
        r"\1[key]",
    ),
    # A key shown in part: `****0000`, `xa***00`.
    (re.compile(r"(?<![\w-])[\w-]{0,16}\*{3,}[\w-]{0,40}"), "[key]"),
    (re.compile(r"\b[a-z][a-z0-9+.-]{1,15}://[^\s'\"<>)\]，。、）]+", re.I), "[url]"),
    (re.compile(r"\b[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+"), "[mail]"),
    (re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?(?:/\d{1,2})?(?![\w.]*\d)"), "[address]"),
    (re.compile(r"\[?(?<![\w:])(?:[0-9a-f]{0,4}:){3,7}[0-9a-f]{0,4}(?![\w:])\]?(?::\d{1,5})?", re.I), "[address]"),
    (
        re.compile(
            rf"(?<![\w.@/-])(?:[a-z0-9_-]{{1,63}}\.){{1,8}}(?:{_TLD})(?![\w-])(?::\d{{1,5}})?(?:/[\w\-./]*)?", re.I
        ),
        "[host]",
    ),
    (re.compile(r"\blocalhost(?::\d{1,5})?\b", re.I), "[host]"),
    # Names without a dot, where the words around them say that they are hosts: `dial tcp`, `lookup`, `host vllm:8000`.
    (
        re.compile(r"((?:\bhost|\blookup|\bconnect(?:ing|ion)? to|\bdial tcp|\bupstream)\s+)[\w-]+:\d{2,5}\b", re.I),
        r"\1[host]",
    ),
    (re.compile(r"(\blookup\s+)[\w.-]+", re.I), r"\1[host]"),
    (re.compile(r"\b(?:org|proj)[-_][A-Za-z0-9]{6,}"), "[id]"),
    # Anything long without a space that mixes letters and digits: base64, hex, tokens.
    (re.compile(r"(?<![\w/+-])(?=[\w/+-]*\d)(?=[\w/+-]*[A-Za-z])[\w/+-]{32,}={0,2}(?![\w/+-])"), "[…]"),
)
_SIEVES = tuple((Sieve.of(pattern), pattern, instead) for pattern, instead in _REPLACEMENTS)
_BLANKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def scrub(text: str, limit: int = MAX_CHARS) -> str:
    """`text` on one line without credentials, addresses and long quotations, at most `limit` characters."""
    line = _BLANKS.sub(" ", text[:MAX_INPUT].encode("utf-8", "replace").decode()).strip()
    folded = fold(line)
    for sieve, pattern, instead in _SIEVES:
        if sieve.may_find(folded):
            line, count = pattern.subn(instead, line)
            folded = fold(line) if count else folded
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"
