"""A comparison calls chance what is chance."""

import random

import pytest
from sacrebleu.metrics.bleu import BLEU

from regard.evaluate.metrics import evaluate_texts
from regard.evaluate.tables import aligned
from regard.report.history import History
from regard.report.plots import LinePlot, compare_plots
from regard.report.significance import Verdict, paired_bootstrap

WORDS = ["the", "a", "red", "blue", "cat", "dog", "sees", "hears", "house", "tree", "and", "of", "to", "with"]


def sentences(seed: int, count: int = 61) -> list[str]:
    generator = random.Random(seed)
    return [" ".join(generator.choices(WORDS, k=generator.randint(5, 13))) for _ in range(count)]


def disturbed(lines: list[str], share: float, seed: int) -> list[str]:
    generator = random.Random(seed)
    return [" ".join(generator.choice(WORDS) if generator.random() < share else w for w in s.split()) for s in lines]


# --- significance


def test_scores_and_signature_are_those_of_sacrebleu() -> None:
    references = sentences(1)
    systems = [disturbed(references, 0.3, 2), disturbed(references, 0.2, 3)]
    signatures, rows = paired_bootstrap(systems, references, "13a")
    for texts, row in zip(systems, rows, strict=True):
        scores = evaluate_texts(texts, [references])
        assert row["bleu"].score == pytest.approx(scores.bleu, abs=1e-9)
        assert row["chrf"].score == pytest.approx(scores.chrf, abs=1e-9)
        assert row["bleu"].interval > 0
    parts = set(signatures["bleu"].split("|"))
    assert {"bs:1000", "seed:12345", "tok:13a"} <= parts
    plain = str(BLEU(tokenize="13a", references=[references]).get_signature())
    assert parts - {"bs:1000", "seed:12345"} == set(plain.split("|"))
    assert "nc:6" in signatures["chrf"]


def test_a_large_difference_is_sure_and_a_small_one_is_not() -> None:
    references = sentences(1)
    base = disturbed(references, 0.4, 2)
    _, rows = paired_bootstrap([base, disturbed(references, 0.05, 3), disturbed(references, 0.4, 4)], references, "13a")
    assert (rows[0]["bleu"].p_value, rows[0]["bleu"].is_sure) == (None, False)
    assert rows[1]["bleu"].is_sure
    assert rows[1]["chrf"].is_sure
    assert not rows[2]["bleu"].is_sure


def test_equal_translations_do_not_differ() -> None:
    references = sentences(1, 13)
    texts = disturbed(references, 0.3, 2)
    _, rows = paired_bootstrap([texts, list(texts)], references, "13a")
    assert rows[1]["bleu"].p_value == rows[1]["chrf"].p_value == 1.0
    assert rows[1]["bleu"].score == rows[0]["bleu"].score


def test_the_same_texts_give_the_same_numbers() -> None:
    references = sentences(5, 17)
    systems = [disturbed(references, 0.3, 2), disturbed(references, 0.2, 3)]
    assert paired_bootstrap(systems, references, "none") == paired_bootstrap(systems, references, "none")
    assert Verdict(1.0, 0.5, 0.04).is_sure


# --- text and plots


def test_columns_line_up() -> None:
    text = aligned([("run", "BLEU"), ("a-long-name", "3.00"), ("b", "12.25")])
    assert text.splitlines() == ["run           BLEU", "a-long-name   3.00", "b            12.25"]


def test_each_run_has_its_line() -> None:
    history = History()
    history.add({"step": 1, "truth_loss": 2.0, "seconds": 1.0, "tokens": 3})
    plots = compare_plots(["one", "other"], [history, history])
    assert [plot.name for plot in plots] == ["loss"]
    assert isinstance(plots[0], LinePlot)
    assert [line.label for line in plots[0].lines] == ["one", "other"]
