"""A Transformer in the native engine, behind the interface of every other model: start, step, reorder, join.

Axes: B sentences, S source positions, R rows of a search, V vocabulary, Y layers, N heads.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Self

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.data.batch import Source
from regard.decode.config import SearchConfig
from regard.decode.record import Recorder
from regard.errors import ConfigError
from regard.models.transformer import Transformer
from regard.native import library as native
from regard.native.packing import Arrays, Packed, check_precision, packed_arrays, refusal
from regard.native.stepper import NativeStepper, is_plain, packed_sources

SIZES = {"fp32": 4, "int8": 1}
"""Bytes of a weight."""
SMALL = 8 << 20
"""Bytes of weights that the caches hold, so that many rows at once do not make up for reading them."""
ROWS = 32
"""Of each thread, with such a model: the keys and values of their sources stay in the nearer caches. Fewer make the
products slower."""


def pointer(array: np.ndarray | Tensor | None) -> int | None:
    if array is None:
        return None
    return array.data_ptr() if isinstance(array, Tensor) else array.ctypes.data


class NativeState:
    """What the decoder remembers. Rows with a common past share its keys and values; nothing is copied."""

    def __init__(self, engine: Engine, handle: int, read: int) -> None:
        self.engine, self.handle = engine, handle
        self.read = read
        """Positions that the oldest row has read."""

    def __del__(self) -> None:
        self.engine.library.rg_state_free(self.engine.handle, self.handle)

    def __len__(self) -> int:
        return self.engine.library.rg_state_rows(self.handle)

    def reorder(self, parents: Int[Tensor, " R"]) -> Self:
        wanted, found = parents.to(torch.int32).contiguous(), ctypes.c_void_p()
        code = self.engine.library.rg_reorder(
            self.engine.handle, self.handle, pointer(wanted), len(wanted), ctypes.byref(found)
        )
        native.checked(code)
        return type(self)(self.engine, found.value or 0, self.read)

    def join(self, other: Self) -> Self:
        found = ctypes.c_void_p()
        code = self.engine.library.rg_join(self.engine.handle, self.handle, other.handle, ctypes.byref(found))
        native.checked(code)
        return type(self)(self.engine, found.value or 0, max(self.read, other.read))


class Engine:
    """The library's model: the weights, their memory, and the tables of positions, which grow."""

    def __init__(self, model: Transformer, arrays: Arrays, *, threads: int, instruction_set: int | None = None) -> None:
        self.handle = 0
        self.library = native.library()
        self.model, self.packed = model, Packed.of(model, arrays)
        self.instruction_set = native.working_sets()[0] if instruction_set is None else instruction_set
        self.handle = self.library.rg_model_new(ctypes.byref(self.packed.weights), self.instruction_set, threads) or 0
        if not self.handle:
            raise MemoryError("the native engine is out of memory")
        self._tables: tuple[Tensor, Tensor] | None = None
        self._growing = threading.Lock()
        self.reach(1, 1)

    def __del__(self) -> None:
        if self.handle:
            self.library.rg_model_free(self.handle)

    def reach(self, source: int, target: int) -> None:
        """Have so many positions; RegardError where the model has learned fewer."""
        if self._reaches(source, target):
            return
        with self._growing:  # another thread may have been first; tables never shrink
            if self._reaches(source, target):
                return
            before = self._tables or ((), ())
            wanted = max(source, len(before[0])), max(target, len(before[1]))
            embeddings = zip((self.model.source_embedding, self.model.target_embedding), wanted, strict=True)
            one, other = (own.positions.upto(count).detach().contiguous() for own, count in embeddings)
            # Another thread may be reading the old tables: they are let go only when the library has the new ones.
            self.library.rg_positions(self.handle, pointer(one), len(one), pointer(other), len(other))
            self._tables = one, other

    def _reaches(self, source: int, target: int) -> bool:
        tables = self._tables
        return tables is not None and len(tables[0]) >= source and len(tables[1]) >= target

    @property
    def entries(self) -> int:
        """Positions of all rows that are remembered now."""
        return self.library.rg_entries(self.handle)


class NativeTransformer:
    """`Decodable`, `Attentive`, and with a search of its own for what has no rules (`stepper`).

    `plain` is the model whose weights it has: what trains, and what is looked at. Its weights must not change.
    """

    def __init__(
        self,
        plain: Transformer,
        precision: str = "fp32",
        *,
        arrays: Arrays | None = None,
        threads: int | None = None,
        instruction_set: int | None = None,
    ) -> None:
        """`arrays` are the packed weights, where they are there already."""
        reason = refusal(plain)
        if reason is not None:
            raise ConfigError(f"the native engine cannot run this model, because {reason}")
        self.plain, self.precision, self.symbols = plain, check_precision(precision), plain.symbols
        arrays = packed_arrays(plain, precision) if arrays is None else arrays
        threads = torch.get_num_threads() if threads is None else threads
        self.engine = Engine(plain, arrays, threads=threads, instruction_set=instruction_set)
        self.vocabulary = plain.output_weight.size(0)
        numbers = sum(each.numel() for each in plain.decoder.parameters()) + plain.output_weight.numel()
        self.rows_at_once = ROWS * threads if numbers * SIZES[precision] <= SMALL else 0
        """Hypotheses beyond which a search is not faster; 0: the more the faster."""

    def start(self, source: Source) -> NativeState:
        tokens, places, lengths, longest = packed_sources(source.each())
        self.engine.reach(longest, 1)
        found = ctypes.c_void_p()
        code = self.engine.library.rg_start(
            self.engine.handle, pointer(tokens), pointer(places), pointer(lengths), len(lengths), ctypes.byref(found)
        )
        native.checked(code)
        return NativeState(self.engine, found.value or 0, 0)

    def step(self, tokens: Int[Tensor, " R"], state: NativeState) -> tuple[Float[Tensor, "R V"], NativeState]:
        logits = torch.empty(len(tokens), self.vocabulary)
        return logits, self._step(tokens, state, logits)

    def step_and_look(
        self, tokens: Int[Tensor, " R"], state: NativeState
    ) -> tuple[Float[Tensor, "R V"], NativeState, Float[Tensor, "R Y N S"]]:
        logits, looks = torch.empty(len(tokens), self.vocabulary), self._room_for_looks(state)
        after = self._step(tokens, state, logits, looks)
        return logits, after, looks

    def log_probabilities(self, logits: Float[Tensor, "R V"]) -> Float[Tensor, "R V"]:
        """Of the logits of a step, with the bits that the search in the library has."""
        given, found = logits.contiguous(), torch.empty(logits.shape)
        self.engine.library.rg_log_probabilities(self.engine.handle, pointer(given), len(given), pointer(found))
        return found

    def stepper(self, config: SearchConfig, recorder: Recorder | None) -> NativeStepper | None:
        """The search in the library; None for what it does not know."""
        return NativeStepper(self, config) if recorder is None and is_plain(config) else None

    def _room_for_looks(self, state: NativeState) -> Float[Tensor, "R Y N S"]:
        config, longest = self.plain.config, self.engine.library.rg_state_longest(state.handle)
        return torch.empty(len(state), config.decoder_layers, config.heads, longest)

    def _step(
        self, tokens: Tensor, state: NativeState, logits: Float[Tensor, "R V"], looks: Tensor | None = None
    ) -> NativeState:
        given, found = tokens.to(torch.int32).contiguous(), ctypes.c_void_p()
        assert len(given) == len(state), "a token for each row: the library writes logits for every row"
        self.engine.reach(1, state.read + 1)
        longest = 0 if looks is None else looks.size(-1)
        pointers = map(pointer, (given, logits, looks))
        code = self.engine.library.rg_step(self.engine.handle, state.handle, *pointers, longest, ctypes.byref(found))
        native.checked(code)
        return NativeState(self.engine, found.value or 0, state.read + 1)
