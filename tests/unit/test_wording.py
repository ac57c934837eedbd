"""Words as wholes: what is required, banned, kept or a term; anywhere in scripts without spaces."""

from __future__ import annotations

import re

import pytest

from regard.decode.translate import Translator
from regard.decode.wording import forbids_longer, forbids_words, holds_term, whole
from regard.text.keep import missing
from regard.text.tokenizer import END
from tests.unit.test_translate import BYTES, TOKENIZER, Echo


@pytest.mark.parametrize(
    ("word", "text", "found"),
    [
        ("chat", "le chat dort", True),
        ("chat", "les chats", False),
        ("chat", "achat", False),
        ("猫", "黒猫が寝る", True),
        ("黒猫", "その黒猫が", True),
        ("แมว", "แมวดำนอน", True),
        ("API", "このAPIは", True),
        ("API", "APIs", False),
        ("고양이", "고양이가", False),
    ],
)
def test_a_word_is_whole(word: str, text: str, found: bool):
    assert (re.search(whole(word), text) is not None) == found
    assert holds_term(text, word) == found
    assert (missing([word], text) == []) == found


def test_a_required_word_is_not_part_of_a_longer_one():
    forbids = forbids_longer(BYTES, "", ["chat"])
    assert [forbids(BYTES.encode(text)) for text in ("cha", "le chat", "le chats", "le chat et les chats")] == [
        False, False, True, False,
    ]  # fmt: skip


@pytest.mark.parametrize("beam", [2, 5])
def test_the_search_obeys(beam: int):
    text = Translator(model=Echo(), tokenizer=TOKENIZER).translate("les chats", require="chat", beam=beam)[0].text
    assert re.search(r"\bchat\b", text)


def test_a_ban_in_a_script_without_spaces_holds_anywhere():
    forbids = forbids_words(BYTES, "", ["猫"], END)
    assert forbids(BYTES.encode("黒猫"))
    assert forbids(BYTES.encode("黒猫が"))
    assert not forbids(BYTES.encode("犬が"))
