"""What a store was made from: its files by their hashes, and the key that equal stores share."""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

from regard.data.prepare import Assignment, Say
from regard.data.rows import beside, files_of
from regard.data.store import FORMAT
from regard.errors import RunError
from regard.text.corpus import file_sha256


def hash_files(assignment: Assignment, say: Say) -> dict[str, str]:
    """SHA-256 of every file, by the name that the recipe gives it."""
    corpora = (*assignment.data.train, *assignment.data.valid)
    names = {name for corpus in corpora for name in files_of(assignment.columns, corpus)}
    names |= {assignment.word_vectors.file} - {""}
    lengths = {str(Path(name).with_name(path.name)) for name in names if (path := beside(assignment.base / name))}
    hashes: dict[str, str] = {}
    for number, name in enumerate(sorted(names | lengths)):
        say(number, len(names), "hashing")
        hashes[name] = file_sha256(assignment.base / name)
    return hashes


def refuse_other_files(began: dict[str, str], found: dict[str, str]) -> None:
    """RunError for files that are not what the run began with."""
    changed = [name for name in sorted(began.keys() | found.keys()) if began.get(name) != found.get(name)]
    if changed:
        have = "has" if len(changed) == 1 else "have"
        raise RunError(
            f"{', '.join(changed)} {have} changed since the run began. Put back what it began with, or choose another "
            f"--out."
        )


def store_key(assignment: Assignment, hashes: dict[str, str]) -> str:
    """Equal keys, equal stores. Weights are not in it: they shape the batches, not the tokens. Neither is whether word
    vectors are trained."""
    data = assignment.data
    corpora = [[[dict(corpus.files), corpus.tag] for corpus in part] for part in (data.train, data.valid)]
    columns = [asdict(column) for column in assignment.columns]
    files = [corpora, hashes, data.languages]
    vectors = assignment.word_vectors
    settings = [
        *(FORMAT, columns, files, asdict(data.filters), asdict(assignment.tokenizer), assignment.given_tokenizer),
        *([vectors.file, vectors.columns] if vectors.file else []),  # without any the key is that of earlier versions
    ]
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
