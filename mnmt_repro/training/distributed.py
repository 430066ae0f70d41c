"""Training by several processes: the processes that `torchrun` starts share out every batch.

All processes read the same stream, and each takes its part of a batch. So a step uses the same
sentences, and a run has the same steps and tokens, however many processes there are. The loss of a
part is taken over the tokens of the whole batch, and `DistributedDataParallel` adds up the
gradients. They equal those of one process up to rounding, and every process then clips and updates
alike. Each process draws its own dropout, from a seed made of the run's seed, the step and the
process, so that a resumed run draws it again. One process alone on a GPU does the same, because a
checkpoint does not hold the GPU's random state.

With `shard` the model is split: each process holds a part of weights, gradients and optimiser's
state, and a layer is put together where it is needed. Checkpoints hold the whole model, so any
number of processes can go on from them.

The first process alone writes checkpoints, log and progress. All must see the run's folder.
"""

from __future__ import annotations

import os
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from mnmt_repro.corpora.batches import Batch
from mnmt_repro.model import DecoderLayer, Transformer

_PATIENCE = timedelta(hours=2)
"""How long processes wait for another, such as the first while it encodes or validates."""


@contextmanager
def process_group(device: str) -> Iterator[str]:
    """Join the processes that `torchrun` has started, and leave them at the end.

    Yields
    ------
    The device of this process: of ``"cuda"`` the one with its number on this machine.
    """
    cuda = torch.device(device).type == "cuda"
    if cuda:
        device = f"cuda:{os.environ['LOCAL_RANK']}"
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if cuda else "gloo", timeout=_PATIENCE)
    try:
        yield device
    finally:
        dist.destroy_process_group()


@dataclass(frozen=True, kw_only=True)
class Processes:
    """The processes that train together, as one of them sees them; alone, nothing is done."""

    rank: int = 0
    count: int = 1
    shard: bool = False  # whether the model is split over them

    @property
    def first(self) -> bool:
        return self.rank == 0

    @property
    def joins(self) -> bool:
        """Whether this one has a part in validating and saving."""
        return self.first or self.shard

    def shares(self, batch: Batch, parts: int = 1) -> Iterator[Batch]:
        """One process's parts: every `count * parts`-th sentence, which spreads lengths evenly.

        Where none is left for one, a sentence with nothing to predict: the gradients are then zero,
        but they are there, for the other processes wait for them.
        """
        for first in range(self.rank, self.count * parts, self.count):
            there = first < len(batch.pair)
            rows = slice(first, None, self.count * parts) if there else slice(1)
            target = batch.target[rows] if there else 0 * batch.target[rows]
            yield Batch(source=batch.source[rows], target=target, pair=batch.pair[rows])

    def objective(self, network: Transformer, loss: Callable[..., Tensor]) -> Callable[..., Tensor]:
        """The network's loss; of several processes, after `backward` all hold the mean gradient."""
        alone = self.count == 1 or self.shard  # a split model adds gradients up by itself
        return loss if alone else DistributedDataParallel(_Loss(network, loss))

    def place(self, network: Transformer, device: str) -> Transformer:
        """The network on its device; split, a layer at a time, where it is to be."""
        if not self.shard:
            return network.to(device)
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

        # A warning against changing the outputs of layers in place, which our model does not.
        warnings.filterwarnings("ignore", "FSDP2-wrapped module", UserWarning)
        mesh = init_device_mesh(torch.device(device).type, (self.count,))
        for layer in network.decoder:  # whose keys and values of the source are taken before it
            cross = cast(DecoderLayer, layer).cross
            fully_shard([cross.k, cross.v], mesh=mesh)
        for layer in (*network.encoder, *network.decoder, network):
            fully_shard(layer, mesh=mesh)
        for name in ("hidden", "loss"):
            register_fsdp_forward_method(network, name)
        return network

    def of_first(self, value: Any) -> Any:
        """The value of the first process, where all join; else the own value."""
        if not self.shard:
            return value
        values = [value]
        dist.broadcast_object_list(values)
        return values[0]

    def mean(self, value: Tensor) -> float:
        """Of a scalar, over the processes."""
        if self.count > 1:
            value = value.clone()
            dist.all_reduce(value)
        return float(value) / self.count

    def seed_dropout(self, seed: int, step: int, device: str) -> None:
        """Seed the dropout of a step; one process alone on a CPU goes on drawing as it did."""
        if self.count > 1 or torch.device(device).type != "cpu":
            torch.manual_seed(zlib.crc32(f"{seed} {step} {self.rank}".encode()))

    def wait(self) -> None:
        """Go on when all have come here."""
        if self.count > 1:
            dist.barrier()

    @contextmanager
    def first_in_turn(self) -> Iterator[None]:
        """Let the first process through a block before the others, who find what it wrote."""
        if not self.first:
            self.wait()
        yield
        if self.first:
            self.wait()


def processes(*, shard: bool = False) -> Processes:
    """The processes of the group that this one has joined, if it has."""
    if not dist.is_initialized():
        return Processes()
    count = dist.get_world_size()
    return Processes(rank=dist.get_rank(), count=count, shard=shard and count > 1)


def is_split(tensor: Any) -> bool:
    """Whether it is a DTensor, found out without the second that importing that class takes."""
    return hasattr(tensor, "full_tensor")


def held(tensor: Any) -> Tensor:
    """Of a tensor that may be split, what this process has."""
    return tensor.to_local() if is_split(tensor) else tensor


def whole(tensor: Any) -> Tensor:
    """A tensor put together again on the CPU if it is split; then all processes must call this."""
    return tensor.full_tensor().cpu() if is_split(tensor) else tensor


def placed(value: Tensor, parameter: Any) -> Tensor:
    """A tensor, whole in every process, split as the parameter is whose shape it has."""
    if not is_split(parameter) or value.shape != parameter.shape:
        return value
    from torch.distributed.tensor import distribute_tensor

    mesh, placements = parameter.device_mesh, parameter.placements
    return distribute_tensor(value.to(mesh.device_type), mesh, placements, src_data_rank=None)


class _Loss(nn.Module):
    """A network's loss as the forward pass that `DistributedDataParallel` wraps."""

    def __init__(self, network: Transformer, loss: Callable[..., Tensor]) -> None:
        super().__init__()
        self.network, self.loss = network, loss

    def forward(self, *inputs: Tensor | float) -> Tensor:
        return self.loss(*inputs)
