"""Learning-rate scaling, a parameter or a block of a matrix at a time.

Paper B, Sections 2 and 4.4, Figure 2 and Table 6: parameters copied from the old model learn at
gamma_old times the rate, new ones at gamma_new times; Appendix D and Table 11: old parameters
chosen by Fisher information.

Under AdamW or Adafactor a scaled gradient gives the same step, so it is the applied update that is
scaled: whatever the optimiser did to a parameter, clipping and weight decay included, gamma times
that is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from mnmt_repro.corpora.vocabulary import PAD
from mnmt_repro.errors import InputError
from mnmt_repro.model import Transformer
from mnmt_repro.training.distributed import placed
from mnmt_repro.upgrading.config import Gamma, check_gamma, gamma_at

NEW, OLD = 0, 1
"""Numbers of the two groups. `NEW` (0) marks new parameters, `OLD` (1) those of the old model.
Fisher information splits the old ones into further groups, numbered above `OLD`."""

Groups = Mapping[str, Tensor]
"""Group of each entry of each parameter.

A dictionary from the parameter's name to a uint8 tensor that broadcasts to its shape."""

_OWN = -1
"""Index under which the count of scaled steps is kept among the states of an optimiser."""


def scale_updates(
    optimiser: torch.optim.Optimizer,
    parameters: Mapping[str, Tensor],
    groups: Groups,
    gammas: Sequence[Gamma],
) -> None:
    """Make every later `optimiser.step()` apply, of each update, only its group's factor.

    The step becomes `p_old + gamma * (p_new - p_old)`; with a factor of 1 it is bit for bit the
    optimiser's own. The moments are updated as ever. The count of steps travels in the optimiser's
    `state_dict`, so that a resumed run goes on along its ramp; a state without it starts at 0.

    Parameters
    ----------
    parameters
        Name -> parameter, as `model.named_parameters()` gives them.
    groups
        Group of each entry; a parameter left out keeps its whole update.
    gammas
        Factor of group 0 (`NEW`), 1 (`OLD`), ...

    Raises
    ------
    InputError
        When a name is unknown, a shape does not broadcast, or a group has no factor.
    """
    for gamma in gammas:
        check_gamma(gamma)
    for name, group in groups.items():
        if name not in parameters:
            raise InputError(f"learning-rate scaling names {name}, which the model does not have")
        shape = parameters[name].shape
        fits = group.ndim <= len(shape) and all(
            a in (1, b) for a, b in zip(reversed(group.shape), reversed(shape), strict=False)
        )
        if not fits:
            raise InputError(
                f"learning-rate scaling of {name} has shape {tuple(group.shape)}, "
                f"the parameter {tuple(shape)}"
            )
        if int(group.max()) >= len(gammas):
            raise InputError(
                f"learning-rate scaling of {name} has group {int(group.max())}, "
                f"but there are only {len(gammas)} factors"
            )
    scaled = {
        name: (parameters[name], group.to(parameters[name].device, torch.int64))
        for name, group in groups.items()
    }
    before: dict[str, Tensor] = {}
    done = 0
    current: list[float] = []  # the factors at this step
    by_entry: dict[str, Tensor] = {}  # parameter name -> the factor of each entry

    def keep(*_: Any) -> None:
        if any(gamma_at(gamma, done + 1) != 1.0 for gamma in gammas):
            for name, (parameter, _group) in scaled.items():
                before[name] = parameter.detach().clone()

    @torch.no_grad()
    def interpolate(*_: Any) -> None:
        nonlocal done
        done += 1
        values = [gamma_at(gamma, done) for gamma in gammas]
        if values != current:
            current[:] = values
            by_entry.clear()
        for name, start in before.items():
            parameter, group = scaled[name]
            if name not in by_entry:
                table = torch.tensor(values, dtype=parameter.dtype, device=parameter.device)
                by_entry[name] = placed(table[group].expand(parameter.shape), parameter)
            parameter.copy_(torch.lerp(start, parameter, by_entry[name]))
        before.clear()

    def save(_: torch.optim.Optimizer, state: dict[str, Any]) -> dict[str, Any]:
        return {**state, "state": {**state["state"], _OWN: {"steps": torch.tensor(done)}}}

    def load(_: torch.optim.Optimizer, state: dict[str, Any]) -> dict[str, Any]:
        nonlocal done
        own = state["state"].get(_OWN)
        done = int(own["steps"]) if own else 0
        return {**state, "state": {k: v for k, v in state["state"].items() if k != _OWN}}

    optimiser.register_step_pre_hook(keep)
    optimiser.register_step_post_hook(interpolate)
    optimiser.register_state_dict_post_hook(save)
    optimiser.register_load_state_dict_pre_hook(load)


def diagonal_fisher(
    model: Transformer, sentences: Iterable[tuple[Tensor, Tensor]]
) -> dict[str, Tensor]:
    """Diagonal of the empirical Fisher information, a target token (Appendix D, Figure 6 right).

    Sum over sentence pairs of the squared gradient of the pair's log-likelihood, over the number
    of target tokens; dropout is off.

    Parameters
    ----------
    sentences
        Source (S,) and target (T,) ids of one pair each; the target begins with the start token.

    Returns
    -------
    Name -> tensor of the parameter's shape.

    Raises
    ------
    InputError
        When there is no sentence.
    """
    parameters = dict(model.named_parameters())
    fisher = {name: torch.zeros_like(parameter) for name, parameter in parameters.items()}
    tokens, training = 0, model.training
    model.eval()
    for source, target in sentences:
        loss = model.loss(source[None], target[None, :-1], target[None, 1:])
        gradients = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
        for name, gradient in zip(parameters, gradients, strict=True):
            if gradient is not None:
                fisher[name] += gradient.square()
        tokens += int((target[1:] != PAD).sum())
    model.train(training)
    if not tokens:
        raise InputError("Fisher information needs at least one sentence pair")
    return {name: value / tokens for name, value in fisher.items()}


def fisher_groups(
    fisher: Mapping[str, Tensor], groups: Groups, thresholds: Sequence[float]
) -> dict[str, Tensor]:
    """Split the old parameters by their Fisher information (Appendix D, Table 11 right).

    New entries stay in group 0 (`NEW`). An old one is in group 1 plus the number of thresholds
    that its information exceeds: with the published single threshold f and factors
    `(gamma_new, 1, gamma_old)`, only old entries above f are slowed down. More thresholds give the
    piecewise function that the paper suggests.

    Examples
    --------
    >>> fisher_groups({"w": torch.tensor([1e-7, 1e-5, 1e-5])},
    ...               {"w": torch.tensor([OLD, OLD, NEW], dtype=torch.uint8)}, (1e-6,))["w"]
    tensor([1, 2, 0], dtype=torch.uint8)
    """
    result = {}
    for name, group in groups.items():
        above = sum((fisher[name] > threshold).to(torch.uint8) for threshold in thresholds)
        old = (group != NEW).to(torch.uint8).cpu()
        result[name] = old * (1 + torch.as_tensor(above).cpu())
    return result
