"""Memory of an upgrade: its peak, in sizes of the new model.

A sharded M2M-100 checkpoint of random weights is upgraded to twice the width, two more layers and a
vocabulary of which a fifth is new, and written. The peak is measured in a process of its own, after
its imports. It is given with and without the pages of mapped files, which the system frees when
memory is short. Two sizes give what a further parameter takes.

    OMP_NUM_THREADS=1 python benchmarks/upgrade_memory.py [--out FILE.json]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
import threading
import time
from pathlib import Path

import pandas as pd
from safetensors.torch import save_file
from stored import keep, resident

from mnmt_repro.architecture import ModelConfig, parameter_counts
from mnmt_repro.interchange.folder import INDEX, weight_files
from mnmt_repro.interchange.weights import Renamed, names_of
from mnmt_repro.model import Transformer
from mnmt_repro.training.checkpoint import Checkpoint, Progress
from mnmt_repro.upgrading.config import DepthConfig, UpgradeConfig
from mnmt_repro.upgrading.recipe import upgrade
from mnmt_repro.upgrading.start import save_upgraded
from mnmt_repro.upgrading.vocabulary import Piece, match_meanings

SHARDS = 4
WANTED = UpgradeConfig(
    wider=2, deeper=DepthConfig(encoder=1, decoder=1), optimiser="reset", schedule="reset"
)


def shape(width: int, layers: int) -> ModelConfig:
    """M2M-100's shape with 40,000 pieces."""
    return ModelConfig.fairseq(vocab_size=40_000, d_model=width, layers=layers, heads=8)


def write_shards(folder: Path, config: ModelConfig) -> None:
    """Random weights in several files, as `save_pretrained` writes them."""
    state, names = Transformer(config).state_dict(), names_of(config)
    index: dict[str, str] = {}
    for shard in range(SHARDS):
        mine = {names[name]: state[name] for name in list(state)[shard::SHARDS]}
        file = f"model-{shard + 1:05}-of-{SHARDS:05}.safetensors"
        save_file(mine, folder / file)
        index |= dict.fromkeys(mine, file)
    (folder / INDEX).write_text(json.dumps({"weight_map": index}), encoding="utf-8")


def memory() -> tuple[int, int]:
    """Bytes of this process, with and without the pages of mapped files."""
    return resident("VmRSS"), resident("RssAnon")


def measure(folder: Path, config: ModelConfig) -> tuple[int, ...]:
    """Size of the new model; peaks (see `memory`) of an upgrade and its writing, less the start."""
    special = [Piece(kind="special", text=role) for role in ("pad", "eos", "unk", "bos")]
    text = [Piece(kind="text", text=str(i)) for i in range(config.vocab_size)]
    pieces = match_meanings(
        [*special, *text[: config.vocab_size - 4]], [*special, *text[config.vocab_size // 5 :]]
    )
    tiny = ModelConfig.fairseq(vocab_size=8, d_model=8, layers=1, heads=2)
    upgrade(Checkpoint.of(Transformer(tiny)), WANTED)  # what torch loads at first use
    before, peaks, done = memory(), [memory()], threading.Event()

    def watch() -> None:
        while not done.is_set():
            peaks.append(memory())
            time.sleep(0.005)

    watcher = threading.Thread(target=watch)
    watcher.start()
    files = weight_files(folder)
    checkpoint = Checkpoint(
        config=config,
        weights=Renamed(config, files, lambda name: files[name].read(name)[name]),
        optimiser={},
        random_state=None,
        progress=Progress(),
        identity="",
    )
    made = upgrade(checkpoint, WANTED, pieces=pieces)
    save_upgraded(folder / "start.safetensors", made)
    done.set()
    watcher.join()
    size = 4 * parameter_counts(made.model.config)["total"]
    return size, *(max(peak[i] for peak in peaks) - before[i] for i in (0, 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--widths", type=int, nargs=2, default=[512, 1024])
    parser.add_argument("--out", type=Path, help="such as data/benchmarks/upgrade_memory.json")
    options = parser.parse_args()
    found = []
    for width in options.widths:
        config = shape(width, 6)
        with (
            tempfile.TemporaryDirectory() as name,
            multiprocessing.get_context("spawn").Pool(1) as pool,
        ):
            write_shards(Path(name), config)
            size, peak, anonymous = pool.apply(measure, (Path(name), config))
        found.append({"size": size, "peak": peak, "without mapped files": anonymous})  # bytes
    table = pd.DataFrame(found)
    print(table.to_string(index=False))
    (slope,) = table["peak"].diff()[1:] / table["size"].diff()[1:]
    print(f"each further byte of the new model takes {slope:.3f} bytes")
    if options.out:
        keep(options.out, table)


if __name__ == "__main__":
    main()
