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
    """How the model is trained; the defaults are the paper's."""

    max_steps: int = 100_000
    """Maximum number of weight updates."""
    max_epochs: int = 0
    """Maximum number of passes over the corpus; 0 = no limit."""
    max_minutes: float = 0.0
    """Maximum training time in minutes, resumptions included; 0 = no limit. The only setting by which timing can change
    the result."""
    batch_tokens: int = 4096
    """Maximum batch size in tokens, counted as rows × the longest padded column."""
    accumulate: int = 1
    """Gradient accumulation: batches per weight update. The gradient is that of one batch with all their tokens."""
    optimizer: str = "adam"
    """adam, or adamw (decoupled weight decay)."""
    beta1: float = 0.9
    """Adam's decay β1 of the mean of gradients."""
    beta2: float = 0.98
    """Adam's decay β2 of the mean of squared gradients."""
    epsilon: float = 1e-9
    """Adam's ε, which is added to the root of that mean."""
    weight_decay: float = 0.0
    """Weight decay; 0 = off."""
    schedule: str = "paper"
    """Learning-rate schedule: paper, inverse-sqrt, cosine (reaching 0 at max_steps) or constant."""
    peak_rate: float = 5e-4
    """Peak learning rate of every schedule but paper, whose peak follows from the width."""
    warmup: int = 4000
    """Steps over which the learning rate rises linearly to its peak."""
    cooldown: int = 0
    """Steps before max_steps over which the learning rate falls linearly to 0, whatever the schedule; 0 = off."""
    label_smoothing: float = 0.1
    """Label smoothing ε: the probability taken from the true class; 0 = off."""
    smoothing_form: str = "others"
    """How ε is spread: others = over the wrong classes (the paper's code), all = over every class (torch)."""
    consistency: float = 0.0
    """R-Drop: weight α of the divergence between two forward passes with different dropout masks (5 in its paper); 0 =
    off. Each batch then takes twice the time, and a small corpus is overfitted less."""
    clip: float = 0.0
    """Maximum gradient norm; 0 = no clipping."""
    ema: float = 0.0
    """Decay of an exponential moving average of the weights, which is then validated and used; 0 = off."""
    validate_every: int = 500
    """Steps between two validations."""
    validate_output: bool = True
    """Let the model generate outputs at each validation, and score them; for translation that is BLEU and
    chrF, greedily."""
    checkpoint_every: int = 500
    """Steps between two checkpoints."""
    keep: int = 5
    """Minimum number of recent checkpoints to keep; those still needed for averaging are always kept."""
    average: int = 5
    """Number of checkpoints averaged at the end; 1 = no averaging."""
    average_of: str = "last"
    """Which checkpoints are averaged: last or best."""
    patience: int = 0
    """Early stopping: validations without improvement before training ends; 0 = never."""
    stop_on: str = "loss"
    """The metric that has to improve: loss, perplexity, or one of the task's own; for translation bleu or chrf."""
    max_skipped: int = 20
    """Consecutive steps with a non-finite gradient before the run is aborted."""
    precision: str = "auto"
    """fp32, bf16, or auto: bf16 where compiled kernels multiply it fast, on processors with AMX. They round the factors
    of linear layers and of the vocabulary's product, very small products aside; sums, weights, attention and recurrent
    cells stay fp32. Without such kernels, bf16 is torch's autocast."""
    threads: int = 0
    """CPU threads; 0 = OMP_NUM_THREADS if that is set, else one per core."""
    tensorboard: bool = False
    """Also write TensorBoard events."""

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
        if self.average_of == "best" and self.validate_every % self.checkpoint_every:
            raise ConfigError(
                f"train.average_of='best' needs a checkpoint at each validation: "
                f"train.validate_every={self.validate_every} must be a multiple of "
                f"train.checkpoint_every={self.checkpoint_every}"
            )
