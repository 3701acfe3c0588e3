"""Texts in ten scripts in which a character can be cut, and small tokenizers that cut them.

`byte_level()` and `byte_fallback()` are of the two kinds there are, made in a moment, so that most letters beyond ASCII
are two to four ids.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Final

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

SCRIPTS: Final = {
    "latin": "naïve café – Straße, ﬁn.",
    "persian": "سلام، می‌روم و نَمی‌آیم؛ ۱۲۳.",
    "arabic": "السَّلَامُ عَلَيْكُمْ",
    "chinese": "你好，世界。𠮷野家、漢字。",
    "japanese": "こんにちは、ガギグ。",
    "korean": "안녕하세요 각 닭",
    "devanagari": "नमस्ते, क्षत्रिय ज्ञान।",
    "thai": "น้ำไหล ไฟดับ",
    "hebrew": "שָׁלוֹם עוֹלָם",
    "emoji": "👨‍👩‍👧‍👦 👋🏽 🇮🇷 ❤️ 1️⃣",
}
END: Final = "<|end|>"


@cache
def byte_level() -> Tokenizer:
    """Bytes as letters, a few merges over ASCII and half of the Persian letters, and a special token."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=[END], show_progress=False
    )
    tokenizer.train_from_iterator([*SCRIPTS.values(), "the then there hello"] * 2, trainer)
    tokenizer.add_tokens([AddedToken("[خانه]", special=False)])
    return tokenizer


@cache
def byte_fallback() -> Tokenizer:
    """Pieces of text with spaces as `▁`, and bytes as `<0xNN>` for what has no piece."""
    names = [
        "<unk>",
        "<s>",
        "</s>",
        *(f"<0x{byte:02X}>" for byte in range(256)),
        "▁",
        "s",
        "l",
        "سلا",
        "م",
        "你",
        "▁the",
    ]
    model = {"type": "BPE", "unk_token": "<unk>", "byte_fallback": True, "fuse_unk": True, "merges": []}
    described: dict[str, Any] = {
        "version": "1.0",
        "added_tokens": [added(at, name) for at, name in enumerate(names[:3])],
        "pre_tokenizer": None,
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        "post_processor": None,
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
            ],
        },
        "model": model | {"vocab": {name: at for at, name in enumerate(names)}},
    }
    return Tokenizer.from_str(json.dumps(described))


def added(at: int, name: str) -> dict[str, object]:
    flags = ("single_word", "lstrip", "rstrip", "normalized")
    return {"id": at, "content": name, "special": True, **dict.fromkeys(flags, False)}
