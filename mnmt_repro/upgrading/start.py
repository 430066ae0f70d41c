"""Where training goes on from after an upgrade: the model, its blocks, the optimiser's state."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from mnmt_repro.errors import InputError
from mnmt_repro.model import Transformer
from mnmt_repro.training.checkpoint import (
    Checkpoint,
    Progress,
    adafactor_state,
    load_checkpoint,
    save_checkpoint,
)
from mnmt_repro.training.distributed import placed
from mnmt_repro.typed_config import build, convert
from mnmt_repro.upgrading.config import Gamma, Ramp, UpgradeConfig
from mnmt_repro.upgrading.learning_rate import scale_updates


@dataclass(frozen=True, kw_only=True)
class Start:
    """Where training goes on from.

    Attributes
    ----------
    groups
        Group (`OLD` or `NEW`, or of `fisher_groups`) of each entry of each parameter.
    optimiser
        Index of a parameter -> its state, as `Checkpoint.optimiser`; empty after a reset.
    steps
        Steps of the learning-rate schedule that the old model had, all of its trainings together.
    gammas
        Learning-rate factor of each group; empty: the configuration's, of `NEW` and `OLD`.
    """

    model: Transformer
    config: UpgradeConfig
    groups: dict[str, Tensor]
    optimiser: dict[int, dict[str, Tensor]]
    steps: int
    gammas: tuple[Gamma, ...] = ()

    @property
    def schedule_start(self) -> int | None:
        """The step at which the learning-rate schedule of `training.loop.train` begins.

        The old model's last step, 0 after a reset, None for a constant rate (footnote 7).
        """
        return {"continued": self.steps, "reset": 0, "constant": None}[self.config.schedule]

    def prepare(self, model: Transformer, optimiser: torch.optim.Optimizer) -> None:
        """Give a fresh `optimiser` of `model` the carried state and the learning-rate scaling.

        Where the schedule goes on, so does Adafactor's own bound on the relative step, which falls
        with each parameter's count of updates: parameters without a state start with the old
        model's count and no second moment.

        Raises
        ------
        InputError
            When the state is another optimiser's.
        """
        gammas = self.gammas or (self.config.gamma_new, self.config.gamma_old)
        if any(gamma != 1.0 for gamma in gammas):
            scale_updates(optimiser, dict(model.named_parameters()), self.groups, gammas)
        adafactor = isinstance(optimiser, torch.optim.Adafactor)
        if self.optimiser and is_adafactor(self.optimiser) != adafactor:
            raise InputError(
                f"the old model's optimiser state is {'AdamW' if adafactor else 'Adafactor'}'s, "
                f"not {type(optimiser).__name__}'s: train with that one, or --optimiser reset"
            )
        # Loading does not copy, and training would write into what is kept here.
        parameters = list(model.parameters())
        state = {
            i: {key: placed(t.clone(), parameters[i]) for key, t in s.items()}
            for i, s in self.optimiser.items()
        }
        if adafactor and self.config.schedule == "continued":
            for i, parameter in enumerate(parameters):
                state.setdefault(i, adafactor_state(parameter, self.steps))
        if not state:
            return
        settings = optimiser.state_dict()["param_groups"]
        optimiser.load_state_dict({"state": state, "param_groups": settings})


def is_adafactor(state: Mapping[int, Mapping[str, Tensor]]) -> bool:
    """Whether an optimiser's state is Adafactor's; else it is AdamW's, or none."""
    return any("row_var" in each or "variance" in each for each in state.values())


def save_upgraded(path: Path, upgraded: Start, *, identity: str = "") -> None:
    """Write a start, whole or not at all; `load_checkpoint` reads its model too.

    Parameters
    ----------
    identity
        What the start is, as of a checkpoint.
    """
    tensors = {f"group.{name}": t for name, t in upgraded.groups.items()}
    for index, state in upgraded.optimiser.items():
        tensors |= {f"optimiser.{index}.{key}": t for key, t in state.items()}
    about = {
        "config": asdict(upgraded.config),
        "steps": upgraded.steps,
        "factors": [asdict(g) if isinstance(g, Ramp) else g for g in upgraded.gammas],
    }
    more = {"upgrade": json.dumps(about)}
    save_checkpoint(path, upgraded.model, Progress(), identity=identity, tensors=tensors, more=more)


def load_upgraded(source: Path | str | Checkpoint) -> Start:
    """Read what `save_upgraded` wrote, or take it from what `load_checkpoint` has read.

    Raises
    ------
    InputError
        When the file is missing, damaged, or a checkpoint that is no upgrade.
    """
    checkpoint = source if isinstance(source, Checkpoint) else load_checkpoint(source)
    file = checkpoint.file
    assert file is not None
    if "upgrade" not in file.metadata:
        raise InputError(f"{file.path} is a checkpoint, but not one of `mnmt-repro upgrade`")
    about = json.loads(file.metadata["upgrade"])
    tensors = file.read().items()
    return Start(
        model=checkpoint.model(),
        config=build(UpgradeConfig, about["config"]),
        groups={k.removeprefix("group."): t for k, t in tensors if k.startswith("group.")},
        optimiser=checkpoint.optimiser,
        steps=about["steps"],
        gammas=convert(about.get("factors", ()), tuple[Gamma, ...], ("factors",)),
    )
