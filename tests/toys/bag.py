"""The model of the toy that labels texts: the mean of the words' vectors, projected to the labels."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from regard.models import Architecture, Shapes
from tests.toys.label import Texts


@dataclass(frozen=True, kw_only=True)
class BagConfig:
    architecture: str = "bag"
    width: int = 16


class Bag(nn.Module):
    def __init__(self, config: BagConfig, shapes: Shapes) -> None:
        super().__init__()
        self.embedding = nn.Embedding(shapes["text"], config.width)
        self.output = nn.Linear(config.width, shapes["label"])

    def forward(self, batch: Texts) -> Float[Tensor, "B V"]:
        vectors = self.embedding(batch.text.values) * batch.text.mask[..., None]
        return self.output(vectors.sum(1) / batch.text.mask.sum(1, keepdim=True))


ARCHITECTURE = Architecture(config=BagConfig, build=Bag, tasks=("label",))
