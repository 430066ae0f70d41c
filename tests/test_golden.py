"""Golden losses: what our code computes may not change without its version being raised.

The numbers of `golden_losses.json` are our own output, kept to notice a change, not to prove
anything right; other tests do that. Where a change of behaviour is meant, raise the room's number
in `mnmt_repro/runs/code_version.py` and write the file again::

    OMP_NUM_THREADS=1 python tests/test_golden.py
"""

from __future__ import annotations

import hashlib
import itertools
import json
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from small_runs import PAIRS, VARIED, adamw, fairseq, small_data, t5

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.corpora.batches import BatchStream
from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.runs.code_version import code_version
from mnmt_repro.runs.start import untrained_pieces
from mnmt_repro.training.checkpoint import Progress, load_checkpoint
from mnmt_repro.training.config import LAST, TrainingConfig
from mnmt_repro.training.loop import train
from mnmt_repro.upgrading.config import DepthConfig, Ramp, UpgradeConfig
from mnmt_repro.upgrading.recipe import upgrade

FILE = Path(__file__).with_name("golden_losses.json")
UNEVEN = Mixture.two(*PAIRS, 0.3)
RAISE = (
    "{what} is no longer what code version {version} computed. If that is meant, raise the room's "
    "number in mnmt_repro/runs/code_version.py and run: python tests/test_golden.py"
)
RUNS = {
    "t5 adafactor": (
        t5(),
        TrainingConfig(learning_rate=0.1, warmup_steps=4, batch_tokens=256, steps=12),
    ),
    "fairseq adamw dropout smoothing clip": (
        fairseq(dropout=0.1, attention_dropout=0.1),
        adamw(learning_rate=0.003, steps=12, label_smoothing=0.1, clip_norm=1.0, weight_decay=0.01),
    ),
}
UPGRADED = "upgraded: noisy wide layers, deeper, new pieces, rising rate"
UPGRADE = UpgradeConfig(
    wider=2.0,
    deeper=DepthConfig(encoder=1, decoder=1),
    gamma_old=Ramp(start=0.05, end=0.5, steps=8),
    gamma_new=2.0,
    seed=3,
)


def losses(name: str) -> list[list[float]]:
    """Training and validation loss at each point of the curve, float32 on one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        run = _upgraded if name == UPGRADED else partial(_from_scratch, *RUNS[name])
        progress = run(Path(folder))
    torch.set_num_threads(before)
    return [
        [round(point["train_loss"], 6), round(point["cross_entropy"], 6)]
        for point in progress.curve
    ]


def _from_scratch(model: ModelConfig, config: TrainingConfig, folder: Path) -> Progress:
    data = small_data(finite=300)
    return train(model, config, data, UNEVEN, folder, seed=7, progress_bar=False)[1]


def _upgraded(folder: Path) -> Progress:
    """A model of the first pair, upgraded and trained on with both."""
    data, (pair, _) = small_data(finite=300), PAIRS
    config = adamw(learning_rate=0.003, steps=12)
    two_layers = replace(fairseq(), encoder_layers=2, decoder_layers=2)
    train(two_layers, config, data, Mixture.of({pair: 1.0}), folder / "old", seed=7)
    old = load_checkpoint(folder / "old" / LAST)
    pieces = untrained_pieces(VARIED, [pair], old.config.vocab_size)
    new = upgrade(old, UPGRADE, pieces=pieces)
    return train(
        new.model, config, data, UNEVEN, folder / "new", seed=8, progress_bar=False,
        prepare=new.prepare, schedule_start=new.schedule_start,
    )[1]  # fmt: skip


def stream_digest(finite: int) -> str:
    """Hash of the first batches of a stream, to the last token."""
    stream = BatchStream(
        small_data(finite=finite).sentences, UNEVEN, batch_tokens=256, seed=7, window=256
    )
    found = hashlib.sha256()
    for _, batch in itertools.islice(stream.batches(), 20):
        for array in (batch.source, batch.target, batch.pair):
            found.update(repr(array.shape).encode())
            found.update(np.ascontiguousarray(array, dtype="<i8").tobytes())
    return found.hexdigest()


def computed() -> dict:
    return {
        "code_version": code_version(upgraded=True),
        "losses": {name: losses(name) for name in (*RUNS, UPGRADED)},
        "streams": {"endless": stream_digest(0), "finite": stream_digest(300)},
    }


@pytest.fixture(scope="module")
def golden() -> dict:
    return json.loads(FILE.read_text(encoding="utf-8"))


def test_the_golden_losses_are_of_this_code_version(golden: dict) -> None:
    assert golden["code_version"] == code_version(upgraded=True), (
        "the code version was raised: write the golden losses again with "
        "`OMP_NUM_THREADS=1 python tests/test_golden.py`"
    )


@pytest.mark.parametrize("name", (*RUNS, UPGRADED))
def test_losses_are_the_golden_ones(golden: dict, name: str) -> None:
    message = RAISE.format(what=f"the loss of a fixed run ({name})", version=golden["code_version"])
    # Other processors add up in another order, which twelve steps do not blow up to 1e-4.
    np.testing.assert_allclose(
        losses(name), golden["losses"][name], rtol=1e-4, atol=0, err_msg=message
    )


@pytest.mark.parametrize(("name", "finite"), [("endless", 0), ("finite", 300)])
def test_batches_are_the_golden_ones(golden: dict, name: str, finite: int) -> None:
    message = RAISE.format(what="the stream of batches", version=golden["code_version"])
    assert stream_digest(finite) == golden["streams"][name], message


if __name__ == "__main__":
    FILE.write_text(json.dumps(computed(), indent=1) + "\n", encoding="utf-8")
    print(f"written: {FILE}")
