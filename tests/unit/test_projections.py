"""A projection is an object that another one can replace: attention and the output layer then use that, everywhere."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from regard.data.batch import Source
from regard.models import Transformer, TransformerConfig
from regard.nn.attention import MultiHeadAttention, Part
from regard.nn.linear import Product, linear
from tests.decodables import collated

PARTS: tuple[Part, ...] = ("all", "queries", "memory")


class Counted:
    """The same projection, and how often it was asked."""

    def __init__(self, inner: Product) -> None:
        self.inner, self.calls = inner, 0

    def __call__(self, x: Tensor) -> Tensor:
        self.calls += 1
        return self.inner(x)


def attention(*, bias: bool) -> MultiHeadAttention:
    torch.manual_seed(3)
    layer = MultiHeadAttention(21, 7, key_heads=7, key_width=5, value_width=11, bias=bias)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    return layer


@pytest.mark.parametrize("bias", [True, False])
def test_the_rows_of_a_product_are_the_outputs_of_the_whole(bias: bool):
    layer, x = attention(bias=bias), torch.randn(2, 3, 21)
    whole = layer.projection("all")(x)
    parts = torch.cat([layer.projection("queries")(x), layer.projection("memory")(x)], -1)
    torch.testing.assert_close(whole, parts, rtol=1e-5, atol=1e-5)
    assert torch.equal(whole, linear(x, layer.weight, layer.bias))


@pytest.mark.parametrize("part", PARTS)
def test_what_replaces_a_projection_is_used(part: Part):
    layer, x, memory = attention(bias=True), torch.randn(2, 3, 21), torch.randn(2, 5, 21)
    expected = layer(x), layer(x, memory)
    own = layer.projection(part)
    assert isinstance(own, Product)
    counted = layer.replaced[part] = Counted(own)
    assert torch.equal(layer(x), expected[0])
    assert torch.equal(layer(x, memory), expected[1])
    assert counted.calls == 1


def test_a_whole_model_steps_through_what_replaces_its_projections():
    torch.manual_seed(5)
    config = TransformerConfig(width=24, heads=3, feedforward=29, encoder_layers=2, decoder_layers=2, share="none")
    model = Transformer(config, 37, 41).eval()
    batch = collated([[5, 7, 3], [9, 3, 3]], [[4, 6], [8, 11]])
    expected = model(batch)
    layers = [layer for layer in model.modules() if isinstance(layer, MultiHeadAttention)]
    for layer in layers:
        for part in PARTS:
            own = layer.projection(part)
            assert isinstance(own, Product)
            layer.replaced[part] = Counted(own)
    model.replaced_output = output = Counted(Product(model.output_weight, model.output_bias))
    assert torch.equal(model(batch), expected)
    with torch.inference_mode():
        state = model.start(Source.of([[5, 7, 3]]))
        model.step(torch.tensor([2]), state)
    assert output.calls == 2
    assert sum(sum(each.calls for each in layer.replaced.values()) for layer in layers) == 2 * (2 + 2 + 2 * 2)
