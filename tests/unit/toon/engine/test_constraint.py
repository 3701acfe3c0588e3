"""Answers that can only be what the schema says (proxy.toon.engine.constraint)."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from proxy.toon.engine.constraint import ConstraintBroken, Grammar, UnenforceableSchema
from proxy.toon.engine.job import Failure, Job, Piece
from proxy.toon.engine.scheduler import Limits
from tests.support.toon_toy import Bench, ToyDecoder, toy_job

EOS = 0
TEXTS = ["سلام دنیا", "नमस्ते", "你好，世界", '{"name": "नाम", "عدد": 12}', "👩‍👩‍👧"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """All bytes, and a few pieces of words in many scripts."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<eos>"], initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(TEXTS, trainer)
    return made


@pytest.fixture(scope="module")
def grammar(tokenizer: Tokenizer) -> Grammar:
    return Grammar(tokenizer.to_str(), VOCAB, {EOS})


def id_of(tokenizer: Tokenizer, piece: str) -> int:
    found = tokenizer.token_to_id(piece)
    assert found is not None
    return found


#: More than the tokenizer has: the ids behind are never chosen.
VOCAB = 320

SCHEMAS: list[dict[str, object]] = [
    {"type": "object", "properties": {"عدد": {"type": "integer", "minimum": 0, "maximum": 99}}, "required": ["عدد"]},
    {
        "type": "object",
        "properties": {
            "名字": {"enum": ["小明", "नमस्ते", "👩‍👩‍👧"]},
            "ok": {"type": "boolean"},
            "list": {"type": "array", "items": {"type": "null"}, "minItems": 1, "maxItems": 2},
        },
        "required": ["名字", "ok", "list"],
        "additionalProperties": False,
    },
    {"type": "array", "items": {"enum": ["ا", "β", "ג"]}, "minItems": 3, "maxItems": 3},
    {"type": "string", "maxLength": 5},
    {"anyOf": [{"const": "是"}, {"const": 7}]},
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=range(len(SCHEMAS)))
def test_a_model_that_knows_nothing_writes_what_the_schema_says(
    schema: dict[str, object], tokenizer: Tokenizer, grammar: Grammar
) -> None:
    """By chance, in one batch with rows that are free; the free rows are not disturbed."""
    decoder = ToyDecoder(vocab=VOCAB)
    closed = {**schema, "additionalProperties": False} if schema.get("type") == "object" else schema
    bench = Bench(decoder)
    free = toy_job([1, 2, 3], 200, temperature=1.0, seed=5)
    rows = [
        replace(toy_job([at, 7], 200, temperature=1.0, seed=at, stop_ids={EOS}), constraint=grammar.constraint(closed))
        for at in range(4)
    ]
    said = bench.answers([*rows, free])
    for ids in said[:-1]:
        jsonschema.validate(json.loads(tokenizer.decode(ids)), closed)
    assert said[-1] == Bench(decoder).answers([free])[0]


def test_a_complete_text_ends_the_answer(tokenizer: Tokenizer, grammar: Grammar) -> None:
    """With its last id; no id that would stop it is needed."""
    bench = Bench(ToyDecoder(vocab=VOCAB))
    ticket = bench.ask(replace(toy_job([1], 200), constraint=grammar.constraint({"const": "完"})))
    bench.finish()
    end = bench.heard.ends[ticket]
    assert isinstance(end, Piece) and (end.finish, end.stop_id, len(end.ids)) == ("stop", None, 1)
    assert json.loads(tokenizer.decode(bench.heard.ids[ticket])) == "完"


def test_an_answer_goes_on_obeying_after_a_preemption(tokenizer: Tokenizer, grammar: Grammar) -> None:
    """The constraint keeps its place."""
    schema: dict[str, object] = {"type": "array", "items": {"type": "boolean"}, "minItems": 60, "maxItems": 60}
    decoder = ToyDecoder(vocab=VOCAB)

    def jobs() -> list[Job]:
        return [
            replace(toy_job([at], 900, temperature=1.0, seed=at), constraint=grammar.constraint(schema))
            for at in range(3)
        ]

    tight = Bench(decoder, Limits(blocks=64))
    said = tight.answers(jobs())
    assert tight.core.tally.preempted > 0
    assert said == Bench(decoder).answers(jobs())
    assert [len(json.loads(tokenizer.decode(ids))) for ids in said] == [60] * 3


def nested(depth: int) -> object:
    schema: dict[str, object] = {"type": "null"}
    for _ in range(depth):
        schema = {"type": "array", "items": schema}
    return schema


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "array", "uniqueItems": True}, "uniqueItems"),
        ({"not": {"type": "string"}}, "not"),
        ({"type": "object", "x-guidance": {"lenient": True}, "if": {}, "then": {}}, "if"),
        ({"type": "نوع"}, "نوع"),
        ({"$ref": "https://example.com/elsewhere"}, "elsewhere"),
        ({"type": "string", "pattern": "(?=a)b"}, "look-around"),
        ({"type": "string", "minLength": 5, "maxLength": 2}, "minLength"),
        ([1, 2], "must be a JSON object"),
        (True, "must be a JSON object"),
        (nested(200), "recursion"),
        (nested(20_000), "nested too deeply"),
    ],
)
def test_what_cannot_be_enforced_is_refused_in_words(schema: object, reason: str, grammar: Grammar) -> None:
    """Before any model works; a schema cannot ask for leniency."""
    with pytest.raises(UnenforceableSchema, match=reason):
        grammar.constraint(schema)


def test_white_space_cannot_go_on_for_ever(tokenizer: Tokenizer, grammar: Grammar) -> None:
    """An answer cannot get lost between two values."""
    constraint, count = grammar.constraint({"type": "object"}), 0
    constraint.take(id_of(tokenizer, "{"))
    space = id_of(tokenizer, "Ġ")
    while constraint.allowed()[space]:
        constraint.take(space)
        count += 1
    assert count == 24


def test_an_id_that_is_not_allowed_breaks_the_constraint(tokenizer: Tokenizer, grammar: Grammar) -> None:
    """For good; the reason is one line."""
    constraint = grammar.constraint({"type": "object"})
    with pytest.raises(ConstraintBroken) as broken:
        constraint.take(id_of(tokenizer, "x"))
    assert "\n" not in str(broken.value) and str(broken.value)
    with pytest.raises(ConstraintBroken):
        constraint.allowed()


def test_a_row_whose_constraint_breaks_fails_alone(grammar: Grammar) -> None:
    """Its neighbour goes on."""
    decoder = ToyDecoder(vocab=VOCAB)
    bench = Bench(decoder)
    constraint = grammar.constraint({"type": "object"})
    breaks = bench.ask(replace(toy_job([1], 20), constraint=constraint))
    goes = bench.ask(toy_job([2], 20))
    bench.step()
    with pytest.raises(ConstraintBroken):
        constraint.take(VOCAB - 1)
    bench.finish()
    end = bench.heard.ends[breaks]
    assert isinstance(end, Failure) and end.code == "constraint_failed"
    assert bench.heard.ids[goes] == Bench(decoder).answers([toy_job([2], 20)])[0]
