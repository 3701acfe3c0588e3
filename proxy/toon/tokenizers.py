"""A model's tokenizer: text to ids, ids to text, and a conversation to ids by the model's own template.

In: the folder of a tokenizer (`tokenizer.json`, and beside it `tokenizer_config.json` and `chat_template.jinja`). Out:
a `Tokenizer`, for any thread. A template runs in a sandbox: it sees the conversation and nothing else. Words that a
user wrote never become a special token, even if they read like one (`chat_ids`). Never: transformers, torch, a network,
or ids that are added or cut without being asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer as RawTokenizer

from proxy.errors import ConfigError
from proxy.toon.fingerprint import TEMPLATE_FILE, TOKENIZER_CONFIG, TOKENIZER_FILE
from proxy.toon.model_folder import read_object
from proxy.toon.text import TextDecoder, Vocabulary, load_vocabulary

Messages = Sequence[Mapping[str, object]]

#: Stands, with a number, for what reads like a special token. A noncharacter: no text that is exchanged has it.
_MARK: Final = "\ufdd0"
_MARKED: Final = re.compile(f"{_MARK}([0-9]+){_MARK}")
_NAMED: Final = ("bos_token", "eos_token", "pad_token", "unk_token")


class TemplateError(ValueError):
    """A conversation that the model's template refuses, in its own words; or there is no template."""


class Tokenizer:
    """`vocabulary` has the bytes of each id; `source` is the text of `tokenizer.json`."""

    def __init__(self, source: str, template: jinja2.Template | None, named: Mapping[str, str]) -> None:
        self.source = source
        self.vocabulary: Vocabulary = load_vocabulary(json.loads(source))
        self._raw = _raw(source)
        self._template, self._named = template, named
        special = [token.content for token in self._raw.get_added_tokens_decoder().values() if token.special]
        self._special_texts = sorted(special, key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, self._special_texts)) or r"(?!)")

    # -- text and ids

    def encode(self, text: str) -> list[int]:
        """Special tokens that stand in the text are read as such; none is added."""
        return list(self._raw.encode(text, add_special_tokens=False).ids)

    def encode_words(self, text: str) -> list[int]:
        """The same, but what reads like a special token is the letters it is written with."""
        return list(self._literal.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: Sequence[int], *, keep_special: bool = False) -> str:
        return self.vocabulary.text_of(ids, keep_special=keep_special)

    def decoder(self, *, keep_special: bool = False) -> TextDecoder:
        """For ids as they come."""
        return TextDecoder(self.vocabulary, keep_special=keep_special)

    def bytes_of(self, id: int) -> bytes:
        """b"" for an id that has no text."""
        pieces = self.vocabulary.pieces
        return pieces[id] if 0 <= id < len(pieces) else b""

    def texts(self, ids: Sequence[int]) -> list[str]:
        """The text that each makes whole; joined, the text of all. Of a character of several ids it is the last that
        has it, so that what is looked for in the text is found in every script."""
        decoder = self.decoder(keep_special=True)
        found = [decoder.feed((id,)) for id in ids]
        return [*found[:-1], found[-1] + decoder.finish()] if found else []

    # -- conversations

    def render(self, messages: Messages, *, add_generation_prompt: bool = True) -> str:
        """The conversation as the model was trained to read it. Raises `TemplateError`."""
        if self._template is None:
            raise TemplateError("this model's tokenizer has no chat template")
        try:
            return self._template.render(
                messages=messages,
                tools=None,
                documents=None,
                add_generation_prompt=add_generation_prompt,
                **self._named,
            )
        except jinja2.TemplateError as problem:
            raise TemplateError(problem.message or type(problem).__name__) from problem
        except (TypeError, ValueError, KeyError, ArithmeticError, RecursionError) as problem:
            raise TemplateError(f"it cannot be rendered: {problem}") from problem

    def chat_ids(self, messages: Messages, *, add_generation_prompt: bool = True) -> list[int]:
        """The conversation as ids. Only the template writes special tokens: nobody ends a turn from inside of it."""
        marked = [self._marked(message) for message in messages]
        text = self.render(marked, add_generation_prompt=add_generation_prompt)
        if _MARK not in text:
            return self.encode(text)
        ids: list[int] = []
        done = 0
        for found in self._special.finditer(text):
            ids += self._unmarked_ids(text[done : found.start()])
            ids += self.encode(found[0])
            done = found.end()
        return ids + self._unmarked_ids(text[done:])

    def _unmarked_ids(self, text: str) -> list[int]:
        return self.encode_words(_MARKED.sub(lambda found: self._special_texts[int(found[1])], text))

    def _marked(self, value: Any) -> Any:
        """With a mark for each text that reads like a special token, wherever in a message it stands."""
        match value:
            case str():
                return self._special.sub(
                    lambda found: f"{_MARK}{self._special_texts.index(found[0])}{_MARK}", value.replace(_MARK, "")
                )
            case Mapping():
                return {key: self._marked(inner) for key, inner in value.items()}
            case list() | tuple():
                return [self._marked(inner) for inner in value]
            case _:
                return value

    @cached_property
    def _literal(self) -> RawTokenizer:
        """Another one, for this is a setting of the whole tokenizer, and threads share it."""
        raw = _raw(self.source)
        raw.encode_special_tokens = True
        return raw


def load_tokenizer(folder: Path) -> Tokenizer:
    """Reads and compiles. Raises `ConfigError` with the file that is wrong."""
    file = folder / TOKENIZER_FILE
    config = read_object(folder / TOKENIZER_CONFIG) if (folder / TOKENIZER_CONFIG).is_file() else {}
    template = _compiled(*_template_of(folder, config))
    named = {name: token for name in _NAMED if (token := _content(config.get(name))) is not None}
    read_object(file)  # its errors have a line
    try:
        return Tokenizer(file.read_text(encoding="utf-8"), template, named)
    except Exception as problem:  # the package raises no narrower one
        raise ConfigError(str(file), None, f"is no tokenizer that can be read here: {problem}") from problem


def _raw(source: str) -> RawTokenizer:
    raw = RawTokenizer.from_str(source)
    # A file may ask for texts to be cut or filled up to a length: an id that is lost without a word.
    raw.no_truncation()
    raw.no_padding()
    return raw


# -- templates --------------------------------------------------------------------------------------------------------


def _template_of(folder: Path, config: Mapping[str, object]) -> tuple[Path, str | None]:
    """A file of its own, or in the configuration: one, or several with names, of which `default` is meant."""
    file = folder / TEMPLATE_FILE
    if file.is_file():
        return file, file.read_text(encoding="utf-8")
    written = config.get("chat_template")
    if isinstance(written, list):
        by_name = {one.get("name"): one.get("template") for one in written if isinstance(one, Mapping)}
        written = by_name.get("default")
    return folder / TOKENIZER_CONFIG, written if isinstance(written, str) else None


def _compiled(file: Path, source: str | None) -> jinja2.Template | None:
    if source is None:
        return None
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols], autoescape=False
    )
    environment.filters["tojson"] = _tojson
    environment.globals |= {"raise_exception": _raise_exception, "strftime_now": _strftime_now}
    try:
        return environment.from_string(source)
    except jinja2.TemplateSyntaxError as problem:
        raise ConfigError(str(file), problem.lineno, f"the chat template is not valid: {problem.message}") from problem


class _Generation(Extension):
    """`{% generation %}…{% endgeneration %}`, which marks for training what the model says, changes no text."""

    tags = {"generation"}  # noqa: RUF012  (as jinja2 wants it)

    def parse(self, parser: jinja2.parser.Parser) -> list[jinja2.nodes.Node]:
        next(parser.stream)
        return list(parser.parse_statements(("name:endgeneration",), drop_needle=True))


def _tojson(value: object, ensure_ascii: bool = False, indent: int | None = None, **_: object) -> str:
    """jinja2's own would escape for HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)


def _raise_exception(message: str) -> None:
    raise jinja2.TemplateError(message)


def _strftime_now(format: str) -> str:
    return datetime.now().strftime(format)


def _content(value: object) -> str | None:
    """A token is written as itself, or as an object with its `content`."""
    content = value.get("content") if isinstance(value, Mapping) else value
    return content if isinstance(content, str) else None
