"""The settings of training."""

from __future__ import annotations

from dataclasses import dataclass

from regard.errors import ConfigError
from regard.nn.loss import FORMS
from regard.train.schedule import SCHEDULES

OPTIMIZERS = ("adam", "adamw")
AVERAGES = ("last", "best")
PRECISIONS = ("auto", "fp32", "bf16")


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """The defaults are the paper's."""

    max_steps: int = 100_000
    """Updates of the weights, at most."""
    max_epochs: int = 0
    """Passes over the corpus, at most; 0 = no limit."""
    max_minutes: float = 0.0
    """Of training, over all resumptions; 0 = no limit. The one setting that may change the result by timing."""
    batch_tokens: int = 4096
    """Rows × the longer side of a batch stay within it."""
    accumulate: int = 1
    """Batches a step; the gradient is that of all their tokens at once."""
    optimizer: str = "adam"
    """adam, or adamw, whose decay does not go through the moments."""
    beta1: float = 0.9
    beta2: float = 0.98
    epsilon: float = 1e-9
    weight_decay: float = 0.0
    """0 = off."""
    schedule: str = "paper"
    """paper, inverse-sqrt, cosine (to 0 at max_steps) or constant."""
    peak_rate: float = 5e-4
    """For all but the paper's schedule, whose peak follows from the width."""
    warmup: int = 4000
    """Steps in which the rate rises to its peak."""
    cooldown: int = 0
    """The last steps before max_steps, in which the rate falls in a line to 0, whatever the schedule; 0 = off."""
    label_smoothing: float = 0.1
    """ε, the probability that is taken from the true class; 0 = off."""
    smoothing_form: str = "others"
    """others: ε shared by the wrong classes (the paper's code); all: by every class (Szegedy 2016, torch)."""
    consistency: float = 0.0
    """Weight of the disagreement of two passes under dropouts of their own (R-Drop: α, 5 there); 0 = one pass. Each
    batch then costs twice the time, and a small corpus is learnt by heart less."""
    clip: float = 0.0
    """Largest gradient norm; 0 = off."""
    ema: float = 0.0
    """Decay of a moving average of the weights, which is then validated and used; 0 = off."""
    validate_every: int = 500
    """Steps between two validations."""
    validate_output: bool = True
    """Let the model generate outputs at each validation, and score them; for translation that is BLEU, greedily."""
    checkpoint_every: int = 500
    """Steps between two checkpoints."""
    keep: int = 5
    """Of the last checkpoints, so many stay at least; those that are still to be averaged stay in any case."""
    average: int = 5
    """How many checkpoints are averaged at the end; 1 = none."""
    average_of: str = "last"
    """The last ones, or the best."""
    patience: int = 0
    """Validations without improvement before training stops; 0 = never."""
    stop_on: str = "loss"
    """The metric that has to improve: loss, perplexity, or one of the task's own; for translation bleu."""
    max_skipped: int = 20
    """Steps in a row with a gradient that is not finite before the run is given up."""
    precision: str = "auto"
    """fp32, bf16, or auto: bf16 where the processor multiplies it in hardware and a trial has shown that it works."""
    threads: int = 0
    """0 = as many as there are cores."""
    tensorboard: bool = False
    """Write events for TensorBoard too."""

    @property
    def passes(self) -> int:
        """How often a step sees each sentence."""
        return 2 if self.consistency else 1

    def __post_init__(self) -> None:
        at_least_one = "max_steps batch_tokens accumulate validate_every checkpoint_every keep average max_skipped"
        for key in at_least_one.split():
            if getattr(self, key) < 1:
                raise ConfigError(f"train.{key}={getattr(self, key)} must be at least 1")
        for key, most in (("accumulate", 1 << 20), ("threads", 4096)):
            if getattr(self, key) > most:
                raise ConfigError(f"train.{key}={getattr(self, key)} must be at most {most:,}")
        may_be_off = "max_epochs max_minutes weight_decay cooldown consistency clip patience threads"
        for key in may_be_off.split():
            if getattr(self, key) < 0:
                raise ConfigError(f"train.{key}={getattr(self, key)} must not be negative; 0 means off")
        for key in ("beta1", "beta2", "ema", "label_smoothing"):
            if not 0.0 <= getattr(self, key) < 1.0:
                raise ConfigError(f"train.{key}={getattr(self, key)} must be at least 0 and below 1")
        for key in ("epsilon", "peak_rate", "warmup"):
            if not getattr(self, key) > 0:
                raise ConfigError(f"train.{key}={getattr(self, key)} must be above 0")
        choices = {
            "optimizer": OPTIMIZERS,
            "schedule": SCHEDULES,
            "average_of": AVERAGES,
            "precision": PRECISIONS,
            "smoothing_form": FORMS,
        }
        for key, allowed in choices.items():
            if getattr(self, key) not in allowed:
                raise ConfigError(f"train.{key}={getattr(self, key)!r} is not one of {', '.join(allowed)}")
        if self.stop_on not in ("loss", "perplexity") and not self.validate_output:
            raise ConfigError(f"train.stop_on={self.stop_on!r} needs train.validate_output=true")
        if self.average_of == "best" and self.validate_every % self.checkpoint_every:
            raise ConfigError(
                f"train.average_of='best' needs a checkpoint at each validation: "
                f"train.validate_every={self.validate_every} must be a multiple of "
                f"train.checkpoint_every={self.checkpoint_every}"
            )
