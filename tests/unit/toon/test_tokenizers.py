"""`proxy.toon.tokenizers`: ids and conversations as transformers makes them, and none that a user made up."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from proxy.errors import ConfigError
from proxy.toon.corpus import read_corpus
from proxy.toon.tiny import TEMPLATE, write_tokenizer
from proxy.toon.tokenizers import TemplateError, Tokenizer, load_tokenizer
from tests.support.scripts import SCRIPTS

CHAT = [
    {"role": "system", "content": "तुम मदद करते हो।"},
    {"role": "user", "content": "سلام\nحال شما چطور است؟"},
    {"role": "assistant", "content": "你好 🙂"},
    {"role": "user", "content": " naïve café "},
]


@cache
def small() -> Tokenizer:
    with TemporaryDirectory() as folder:
        write_tokenizer(Path(folder))
        return load_tokenizer(Path(folder))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer(made)
    return made


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return small()


@pytest.fixture(scope="module")
def theirs(folder: Path) -> Any:
    return AutoTokenizer.from_pretrained(folder)


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copy"))


def with_template(copy: Path, template: str) -> Tokenizer:
    (copy / "chat_template.jinja").write_text(template)
    return load_tokenizer(copy)


# -- text and ids -----------------------------------------------------------------------------------------------------


def test_ids_are_those_of_transformers(tokenizer: Tokenizer, theirs: Any) -> None:
    """In every script, and back."""
    for text in [line for lines in read_corpus().values() for line in lines] + list(SCRIPTS.values()):
        ids = tokenizer.encode(text)
        assert ids == theirs(text, add_special_tokens=False).input_ids
        assert tokenizer.decode(ids) == text


def test_ids_have_bytes_and_texts(tokenizer: Tokenizer) -> None:
    """Of a character that is several ids the last has it whole; together their bytes are the text."""
    ids = tokenizer.encode("𠮷!")
    assert b"".join(map(tokenizer.bytes_of, ids)) == "𠮷!".encode()
    assert tokenizer.texts(ids) == [*[""] * (len(ids) - 2), "𠮷", "!"]
    assert tokenizer.texts(ids[:1]) == ["\ufffd"]
    assert tokenizer.texts([]) == []
    assert tokenizer.bytes_of(100_000) == b""
    assert tokenizer.texts([2]) == ["<|im_end|>"]
    decoder = tokenizer.decoder()
    assert [decoder.feed([one]) for one in ids[-2:]] != []
    assert tokenizer.decode([2, *tokenizer.encode("سلام")]) == "سلام"
    assert tokenizer.decode([2, *tokenizer.encode("سلام")], keep_special=True) == "<|im_end|>سلام"


def test_a_file_that_asks_for_cutting_and_filling_up_is_overruled(copy: Path) -> None:
    """No id is lost or added without a word."""
    told = json.loads((copy / "tokenizer.json").read_text())
    told["truncation"] = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
    told["padding"] = {
        **{"strategy": {"Fixed": 64}, "direction": "Right", "pad_to_multiple_of": None},
        **{"pad_id": 0, "pad_type_id": 0, "pad_token": "<|pad|>"},
    }
    (copy / "tokenizer.json").write_text(json.dumps(told))
    made = load_tokenizer(copy)
    assert made.decode(made.encode("سلام دنیا"), keep_special=True) == "سلام دنیا"


# -- conversations ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prompt", [True, False])
def test_a_conversation_is_rendered_as_transformers_does(tokenizer: Tokenizer, theirs: Any, prompt: bool) -> None:
    expected = theirs.apply_chat_template(CHAT, tokenize=False, add_generation_prompt=prompt)
    assert tokenizer.render(CHAT, add_generation_prompt=prompt) == expected
    assert tokenizer.chat_ids(CHAT, add_generation_prompt=prompt) == tokenizer.encode(expected)


TEMPLATES = {
    "loop controls": "{% for m in messages %}{% if loop.index > 2 %}{% break %}{% endif %}{{ m.content }}{% endfor %}",
    "training marks": "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}",
    "JSON": "{{ messages[0] | tojson }}{{ messages | tojson(indent=2) }}",
    "blocks": "{% if true %}\n  {{ bos_token }}\n{% endif %}\n{{ eos_token }}{{ pad_token }}{{ tools is none }}",
    "spaces": "  {%- for m in messages %}\n    {{- m['content'] | trim }}\n  {%- endfor %}\n",
}


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES.keys())
def test_templates_mean_what_they_mean_to_transformers(template: str, copy: Path, theirs: Any) -> None:
    """White space, filters and tags alike."""
    expected = theirs.apply_chat_template(CHAT, chat_template=template, tokenize=False)
    assert with_template(copy, template).render(CHAT, add_generation_prompt=False) == expected


def test_a_template_may_stand_in_the_configuration(copy: Path) -> None:
    """Alone, or among others by name."""
    (copy / "chat_template.jinja").unlink()
    config = copy / "tokenizer_config.json"
    for written in (
        "{{ eos_token }}",
        [{"name": "tool", "template": ""}, {"name": "default", "template": "{{ eos_token }}"}],
    ):
        config.write_text(json.dumps({"eos_token": {"content": "<|im_end|>"}, "chat_template": written}))
        assert load_tokenizer(copy).render([]) == "<|im_end|>"
    config.write_text("{}")
    with pytest.raises(TemplateError, match="has no chat template"):
        load_tokenizer(copy).render([])


def test_a_template_may_refuse_a_conversation(copy: Path) -> None:
    """In its own words."""
    made = with_template(copy, "{{ raise_exception('roles must alternate: کاربر') }}")
    with pytest.raises(TemplateError, match=r"^roles must alternate: کاربر$"):
        made.render(CHAT)


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ cycler.__init__.__globals__.os.getcwd() }}",
        "{% include '/etc/passwd' %}",
        "{{ messages[0].content + 1 }}",
        "{{ 1 / 0 }}",
        "{% for i in range(99999999) %}{% endfor %}",
    ],
)
def test_a_template_sees_the_conversation_and_nothing_else(template: str, copy: Path) -> None:
    """What it does beyond is refused as a conversation that cannot be rendered, and raises nothing else."""
    made = with_template(copy, template)
    with pytest.raises(TemplateError):
        made.render(CHAT)


def test_a_template_that_is_not_valid_is_told_when_it_is_loaded(copy: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        with_template(copy, "{{ bos_token }}\n{% for m in %}")
    assert caught.value.line == 2
    assert caught.value.file.endswith("chat_template.jinja")
    assert caught.value.reason.startswith("the chat template is not valid: ")


SPECIAL = st.sampled_from(
    ["<|im_end|>", "<|im_start|>", "<|pad|>", "<|im_", "end|>", "\ufdd0", "\nassistant\n", "سلام"]
)


@given(st.lists(SPECIAL, max_size=6).map("".join))
def test_a_user_cannot_end_a_turn(said: str) -> None:
    """What reads like a special token is letters: special ids are the template's own, and the text is what was said."""
    tokenizer = small()
    ids = tokenizer.chat_ids([{"role": "user", "content": said}])
    assert [one for one in ids if one < 3] == [1, 2, 1]
    inside = tokenizer.decode(ids[1 : ids.index(2)])
    assert inside == "user\n" + said.replace("\ufdd0", "")


def test_all_that_a_message_holds_is_words(copy: Path) -> None:
    """Also parts and other fields, numbers and nothing, and a special token of a single letter."""
    told = json.loads((copy / "tokenizer.json").read_text())
    told["added_tokens"].append({**told["added_tokens"][0], "id": 512, "content": "♠"})
    (copy / "tokenizer.json").write_text(json.dumps(told))
    made = with_template(
        copy, "♠{% for m in messages %}{{ m.name }}{{ m.content[0].text }}{{ m.n }}{{ m.x }}♠{% endfor %}"
    )
    ids = made.chat_ids([{"name": "<|im_end|>", "content": ({"text": "♠ سلام"},), "n": 3, "x": None}])
    assert [one for one in ids if one < 3 or one == 512] == [512, 512]
    assert made.decode(ids) == "<|im_end|>♠ سلام3None"


def test_a_template_may_ask_for_the_day(copy: Path) -> None:
    assert with_template(copy, "{{ strftime_now('%Y') }}").render([]).isdigit()


def test_words_alone_are_never_special(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("<|im_end|>") == [2]
    assert 2 not in tokenizer.encode_words("<|im_end|>")
    assert tokenizer.decode(tokenizer.encode_words("<|im_end|>")) == "<|im_end|>"
    assert tokenizer.encode("<|im_end|>") == [2], "the one has not changed the other"


# -- files ------------------------------------------------------------------------------------------------------------


def test_files_that_are_wrong_are_told(copy: Path) -> None:
    file = copy / "tokenizer.json"
    whole = json.loads(file.read_text())
    for text, reason in (
        ("{", "is not JSON"),
        (
            json.dumps(whole | {"decoder": None}),
            "is no tokenizer that can be read here: this tokenizer's decoder is none",
        ),
        (json.dumps(whole | {"model": {"type": "Nobody", "vocab": {}}}), "is no tokenizer that can be read here: "),
    ):
        file.write_text(text)
        with pytest.raises(ConfigError) as caught:
            load_tokenizer(copy)
        assert caught.value.file == str(file)
        assert reason in caught.value.reason
    file.unlink()
    with pytest.raises(ConfigError, match=r"tokenizer\.json: cannot be read"):
        load_tokenizer(copy)


def test_a_tokenizer_needs_neither_torch_nor_transformers(folder: Path) -> None:
    script = (
        "import sys, pathlib; from proxy.toon.tokenizers import load_tokenizer; "
        "load_tokenizer(pathlib.Path(sys.argv[1])).chat_ids([{'role': 'user', 'content': 'hi'}]); "
        "print(*sorted({'torch', 'transformers'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", script, str(folder)], check=True, capture_output=True, text=True)
    assert run.stdout.strip() == ""


def test_the_template_of_the_small_models_is_an_ordinary_one(folder: Path) -> None:
    assert (folder / "chat_template.jinja").read_text() == TEMPLATE
