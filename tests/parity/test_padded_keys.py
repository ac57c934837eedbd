"""The kernels on which batch invariance rests: padding behind a row's own keys or classes changes no bit.

Each is asked with many shapes, ages and paddings, alone and among others. A new version of torch, or another
instruction set (ATEN_CPU_CAPABILITY), that sums in another order fails here, by name, and not in a translation.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from regard.decode.rules import log_probabilities
from regard.nn.attention import KEY_STRIDE, attend_by_row, padded_keys
from regard.nn.linear import linear
from regard.nn.masks import lengths_mask

WIDTHS = [4, 5, 7, 8, 11, 16, 24, 32, 64, 100]


@dataclass
class Keys:
    """Rows of different age, with their keys and values."""

    queries: Tensor
    keys: Tensor
    values: Tensor
    ages: Tensor

    @classmethod
    def drawn(cls, generator: random.Random) -> Keys:
        rows, heads, queries = generator.choice([1, 2, 7, 33]), generator.choice([1, 2, 3, 4]), generator.choice([1, 5])
        width, value_width, longest = generator.choice(WIDTHS), generator.choice(WIDTHS), generator.choice([7, 20, 70])
        shape = (rows, heads, longest)
        ages = torch.randint(1, longest + 1, (rows,))
        return cls(
            3 * torch.randn(rows, heads, queries, width),
            torch.randn(*shape, width),
            torch.randn(*shape, value_width),
            ages,
        )

    def attend(self, rows: Tensor, size: int) -> Tensor:
        """With room for `size` keys, and noise where a row has none."""
        ages = self.ages[rows]
        mask, used = lengths_mask(ages, size), min(size, self.keys.size(2))
        keys, values = (torch.randn(len(rows), part.size(1), size, part.size(3)) for part in (self.keys, self.values))
        keys[:, :, :used], values[:, :, :used] = self.keys[rows, :, :used], self.values[rows, :, :used]
        return attend_by_row(self.queries[rows], keys, values, mask)


@pytest.mark.parametrize("seed", range(5))
def test_keys_that_nobody_may_look_at_change_no_bit(seed: int):
    torch.manual_seed(seed)
    generator = random.Random(seed)
    for _ in range(20):
        drawn = Keys.drawn(generator)
        every = torch.arange(len(drawn.ages))
        expected = drawn.attend(every, padded_keys(int(drawn.ages.max())))
        more = padded_keys(int(drawn.ages.max())) + KEY_STRIDE * generator.randint(1, 9)
        assert torch.equal(drawn.attend(every, more), expected)
        some = torch.randperm(len(every))[: generator.randint(1, len(every))]
        assert torch.equal(drawn.attend(some, padded_keys(int(drawn.ages[some].max()))), expected[some])
        one = some[:1]
        assert torch.equal(drawn.attend(one, padded_keys(int(drawn.ages[one].max()))), expected[one])


@pytest.mark.parametrize("classes", [1, 2, 5, 13, 16, 17, 29, 64, 1000])
def test_classes_that_cannot_come_change_no_bit(classes: int):
    """The width of a pointer's logits is that of the widest state beside it."""
    logits = 5 * torch.randn(31, classes)
    expected = log_probabilities(logits)
    for more in (1, 3, 16, 37, 500):
        padded = torch.nn.functional.pad(logits, (0, more), value=-torch.inf)
        assert torch.equal(log_probabilities(padded)[:, :classes], expected)
        assert torch.equal(log_probabilities(padded[7:8])[:, :classes], expected[7:8])


@pytest.mark.parametrize("outputs", [1, 2, 3, 5, 7, 11, 13, 17, 29, 64])
def test_a_row_of_a_product_has_the_same_bits_in_any_company(outputs: int):
    """Also where a matrix has so few outputs that a kernel sums the rows of a block in different orders."""
    for features in (2, 7, 11, 16, 22, 29, 64):
        x, weight, bias = torch.randn(150, features), torch.randn(outputs, features), torch.randn(outputs)
        with torch.inference_mode():
            together = linear(x, weight, bias)
            assert torch.allclose(together, x @ weight.T + bias, atol=1e-4)
            for row in range(0, 150, 5):
                assert torch.equal(linear(x[row], weight, bias), together[row])
