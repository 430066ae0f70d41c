"""Training as TensorBoard shows it; the extra `tensorboard` installs what is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mnmt_repro.errors import InputError
from mnmt_repro.training.loop import Step


@contextmanager
def written_for_tensorboard(folder: Path) -> Iterator[Callable[[Step], None]]:
    """Write each step's loss and learning rate, and validation losses, to a folder of events.

    Yields
    ------
    What `training.loop.train` takes as `on_step`.

    Raises
    ------
    InputError
        When TensorBoard is not installed.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ModuleNotFoundError as error:
        raise InputError(
            "--tensorboard: is not installed; pip install 'mnmt-repro[tensorboard]'"
        ) from error

    with SummaryWriter(str(folder)) as writer:

        def write(step: Step) -> None:
            scalars = {"loss/training": step.loss, "learning_rate": step.learning_rate}
            scalars |= {f"loss/{pair}": loss for pair, loss in step.validation.items()}
            for name, value in scalars.items():
                writer.add_scalar(name, value, step.step)

        yield write
