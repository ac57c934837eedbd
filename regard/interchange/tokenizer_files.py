"""The tokenizer of a directory, from the files that it has: tokenizer.json, or BERT's vocab.txt, or GPT-2's vocab.json
and merges.txt. All of them become the content of a tokenizer.json, which `text/published.py` checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.errors import CheckpointError
from regard.files import parse_json_object, read_bounded
from regard.interchange.family import Family, Roles
from regard.interchange.fields import REMEDY, Fields
from regard.interchange.tensors import is_there
from regard.text.published import BadTokenizerError, PublishedCodec, checked_document
from regard.text.symbols import Symbols

TOKENIZER, VOCABULARY, PIECES, MERGES = "tokenizer.json", "vocab.txt", "vocab.json", "merges.txt"
SENTENCEPIECE = ("tokenizer.model", "sentencepiece.bpe.model", "spiece.model")
MAX_BYTES = 64 << 20
PER_ID = 512
"""Bytes of a tokenizer.json for each id that the model has; real ones take less than a fourth of it."""
FEWEST_BYTES = 1 << 20
LONGEST_ID = 10
"""Digits."""


def read_codec(folder: Path, family: Family, config: Fields, size: int) -> PublishedCodec:
    """CheckpointError, naming the file, for a tokenizer that is none, or not this model's."""
    settings = Fields.read_if_there(folder / "tokenizer_config.json")
    spelled = spellings(Fields.read_if_there(folder / "special_tokens_map.json"), settings)
    path, document = read_document(folder, family.roles, settings, spelled, size)
    try:
        kept = checked_document(document, size)
        symbols = symbols_of(kept, family.roles, spelled, config)
        if symbols is None:
            raise BadTokenizerError(f"has no {family.roles.end[0]}, which the model's texts end with")
        return PublishedCodec(kept, size, symbols)
    except BadTokenizerError as error:
        raise CheckpointError(f"{path} {error}. {REMEDY}") from None


def limit_of(size: int) -> int:
    """The most bytes of a tokenizer with so many ids: parsed, they take many times as much memory."""
    return min(MAX_BYTES, FEWEST_BYTES + PER_ID * size)


# The symbols


def spellings(*files: Fields) -> dict[str, str]:
    """`cls_token` → `[CLS]`, as the first file says that names it."""
    found: dict[str, str] = {}
    for fields in files:
        for key, value in fields.values.items():
            spelled = value.get("content") if isinstance(value, dict) else value
            if key.endswith("_token") and isinstance(spelled, str) and spelled:
                found.setdefault(key, spelled)
    return found


def symbols_of(document: Mapping[str, Any], roles: Roles, spelled: Mapping[str, str], config: Fields) -> Symbols | None:
    """By the spellings that the files name, else by the ids in config.json, else as the family spells them."""
    ids = ids_of(document)

    def find(role: tuple[str, str]) -> int | None:
        key, usual = role
        if key in spelled and spelled[key] in ids:
            return ids[spelled[key]]
        given: Any = config.values.get(f"{key}_id")
        given = given[0] if isinstance(given, list) and given else given
        return given if type(given) is int and given >= 0 else ids.get(usual)

    end = find(roles.end)
    if end is None:
        return None
    start, pad, unknown = find(roles.start), find(roles.pad), find(roles.unknown)
    return Symbols(
        start=end if start is None else start,
        end=end,
        pad=end if pad is None else pad,
        unknown=None if unknown in (start, end) else unknown,
        mask=find(roles.mask),
        between=(end,) if roles.doubled else (),
    )


def ids_of(document: Mapping[str, Any]) -> dict[str, int]:
    """Every piece of a checked tokenizer.json with its id."""
    vocabulary: Any = document["model"]["vocab"]
    if isinstance(vocabulary, list):
        vocabulary = {piece: index for index, (piece, _) in enumerate(vocabulary)}
    return {**vocabulary, **{token["content"]: token["id"] for token in document["added_tokens"]}}


# The files


def read_document(
    folder: Path, roles: Roles, settings: Fields, spelled: Mapping[str, str], size: int
) -> tuple[Path, dict[str, Any]]:
    """A file, and what it comes to as a tokenizer.json."""
    limit = limit_of(size)
    if is_there(folder / TOKENIZER):
        path = folder / TOKENIZER
        return path, parse_json_object(read_bounded(path, limit, REMEDY), path, REMEDY)
    if is_there(folder / VOCABULARY):
        path = folder / VOCABULARY
        return path, wordpiece_document(path, read_lines(path, limit), roles, settings, spelled)
    if is_there(folder / PIECES):
        path = folder / PIECES
        vocabulary = parse_json_object(read_bounded(path, limit, REMEDY), path, REMEDY)
        return path, bytes_document(vocabulary, read_lines(folder / MERGES, limit), roles, settings, spelled)
    other = next((name for name in SENTENCEPIECE if is_there(folder / name)), None)
    if other is not None:
        raise CheckpointError(
            f"{folder / other} is a SentencePiece model, and regard reads tokenizer.json; transformers' AutoTokenizer "
            f"writes one: docs/published.md shows how"
        )
    raise CheckpointError(
        f"{folder} has no tokenizer: neither {TOKENIZER} nor {VOCABULARY} nor {PIECES}. Copy it beside the weights."
    )


def read_lines(path: Path, limit: int) -> list[str]:
    """Without their ends; a file of the other system has two characters there."""
    try:
        text = read_bounded(path, limit, REMEDY).decode()
    except UnicodeDecodeError:
        raise CheckpointError(f"{path} is not UTF-8. {REMEDY}") from None
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def wordpiece_document(
    path: Path, lines: Sequence[str], roles: Roles, settings: Fields, spelled: Mapping[str, str]
) -> dict[str, Any]:
    """BERT's: a piece a line, its id is the number of the line."""
    settings.refuse_unless("do_basic_tokenize", True)
    vocabulary = {piece: number for number, piece in enumerate(lines)}
    if len(vocabulary) != len(lines):
        raise CheckpointError(f"{path} has a line twice, and each piece has one id. {REMEDY}")
    accents: Any = settings.values.get("strip_accents")
    return {
        "version": "1.0",
        "added_tokens": added_tokens(vocabulary, roles, spelled, settings),
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": settings.flag("tokenize_chinese_chars", True),
            "strip_accents": accents if isinstance(accents, bool) else None,
            "lowercase": settings.flag("do_lower_case", True),
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": spelled.get(roles.unknown[0], roles.unknown[1]),
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocabulary,
        },
    }


def bytes_document(
    vocabulary: dict[str, Any], lines: Sequence[str], roles: Roles, settings: Fields, spelled: Mapping[str, str]
) -> dict[str, Any]:
    """GPT-2's: bytes, merged in the order of the lines."""
    merges = [line.split(" ") for line in lines if line and not line.startswith("#version")]
    by_bytes = {
        "type": "ByteLevel",
        "add_prefix_space": settings.flag("add_prefix_space", False),
        "trim_offsets": True,
        "use_regex": True,
    }
    return {
        "version": "1.0",
        "added_tokens": added_tokens(vocabulary, roles, spelled, settings),
        "normalizer": None,
        "pre_tokenizer": by_bytes,
        "decoder": by_bytes,
        "model": {"type": "BPE", "unk_token": None, "vocab": vocabulary, "merges": merges},
    }


def added_tokens(
    vocabulary: Mapping[str, Any], roles: Roles, spelled: Mapping[str, str], settings: Fields
) -> list[dict[str, Any]]:
    """The symbols that text may spell out: those with a role, and those that tokenizer_config.json adds."""
    mask = spelled.get(roles.mask[0], roles.mask[1])
    usual = (spelled.get(key, spelling) for key, spelling in (roles.start, roles.end, roles.pad, roles.unknown))
    own = {
        spelling: {"id": vocabulary[spelling], "special": True, "lstrip": spelling == mask and roles.doubled}
        for spelling in (*usual, mask)
        if spelling in vocabulary
    }
    further = settings.table("added_tokens_decoder")
    for index, token in further.items():
        if (
            not index.isdecimal()
            or len(index) > LONGEST_ID
            or not isinstance(token, dict)
            or not isinstance(token.get("content"), str)
        ):
            raise settings.wrong("added_tokens_decoder", "should name a token for each id")
        own[token["content"]] = {"id": int(index), **token}
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    tokens = [plain | token | {"content": content} for content, token in own.items()]
    return sorted(tokens, key=lambda token: token["id"] if type(token["id"]) is int else -1)
