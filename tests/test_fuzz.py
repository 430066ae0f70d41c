"""Damaged files: whatever is wrong with one, it is told as a mistake of the input, or it is read.

Each case changes a well-formed file in one to three places. 400 cases run with the other tests, and
5,000 with ``pytest tests/test_fuzz.py -m nightly``.
"""

from __future__ import annotations

import contextlib
import copy
import csv
import gzip
import io
import json
import lzma
import tarfile
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hf_models import write_model
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import save_file
from sentencepiece.sentencepiece_model_pb2 import ModelProto
from test_results import content

from mnmt_repro import repository
from mnmt_repro.cli import main
from mnmt_repro.corpora.adopting import adopt_vocabulary
from mnmt_repro.corpora.textfile import read_lines
from mnmt_repro.corpora.vocabulary import Vocabulary
from mnmt_repro.errors import InputError
from mnmt_repro.papers.claims.schema import parse_claims
from mnmt_repro.results import read_run
from mnmt_repro.runs.trained import load_trained
from mnmt_repro.training.checkpoint import load_checkpoint, read_progress

ROOT = Path(__file__).resolve().parents[1]
CASES = {"": 400, "nightly": 5000}
JUNK = [
    None, True, -1, 0, 1, 3, 10**400, -(10**20), 2**63, 0.5, -0.0, 1e308, float("inf"),
    float("nan"), "", "x", "1e3", "\x00", "eng-deu", [], {}, [1], ["a", "b"], [[1]], {"a": 1},
    {"a": {"b": []}},
]  # fmt: skip
GRID = """\
conlang: {concepts: 8, syllables: 8, min_concepts: 1, max_concepts: 2, languages: [src, a, b]}
sizes: [4, {d_model: 8, heads: 2, steps: 5}]
weights: [0.5, {src-a: 1}, {}]
seeds: [1, 2]
training: {steps: 5, learning_rate: 0.3, optimiser: adamw}
"""


def places(value: Any, at: tuple = ()) -> list[tuple]:
    """The ways to all keys and items of nested mappings and lists."""
    items = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    found = []
    for key, each in items:
        found += [(*at, key), *places(each, (*at, key))]
    return found


@st.composite
def damaged(draw: Any, whole: Any) -> Any:
    """A document with one to three values replaced, keys renamed, or keys and items removed."""
    made = copy.deepcopy(whole)
    for _ in range(draw(st.integers(1, 3))):
        known = places(made)
        if not known:
            return made
        *way, last = draw(st.sampled_from(known))
        inner = made
        for step in way:
            inner = inner[step]
        how = draw(st.sampled_from(["junk", "junk", "junk", "remove", "rename"]))
        if how == "junk":
            inner[last] = copy.deepcopy(draw(st.sampled_from(JUNK)))
        elif how == "rename" and isinstance(inner, dict):
            inner[draw(st.sampled_from(["x", "steps", 3, None, ""]))] = inner.pop(last)
        else:
            del inner[last]
    return made


def as_yaml(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False)


class Damage:
    """A kind of file: how one is made well-formed, damaged and read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path


class Runs(Damage):
    """`run.json` of a trained model."""

    def whole(self) -> Any:
        command = ["train", "--d-model", "8", "--heads", "2", "--steps", "2", "--curve-points", "1"]
        assert main([*command, "--out", str(self.folder / "run")]) == 0
        return json.loads((self.folder / "run/run.json").read_text("utf-8"))

    def read(self, value: Any) -> None:
        self.put("run/run.json", json.dumps(value))
        load_trained(self.folder / "run")


class Checkpoints(Runs):
    """Metadata and names of tensors of a checkpoint."""

    def whole(self) -> Any:
        super().whole()
        with safe_open(str(self.folder / "run/last.safetensors"), framework="pt") as file:
            self.tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            metadata = file.metadata()
        parsed = {name: json.loads(metadata[name]) for name in ("model", "progress")}
        return {"metadata": parsed, "tensors": {name: name for name in self.tensors}}

    def read(self, value: Any) -> None:
        metadata = value.get("metadata")
        if isinstance(metadata, dict):
            metadata = {str(k): json.dumps(v) for k, v in metadata.items()} | {"identity": "x"}
        names = value.get("tensors")
        pairs = names.items() if isinstance(names, dict) else ()
        tensors = {str(k): self.tensors[str(v)] for k, v in pairs if str(v) in self.tensors}
        path = self.folder / "damaged.safetensors"
        save_file(tensors, path, metadata if isinstance(metadata, dict) else None)
        read_progress(path)
        load_checkpoint(path).model()


class Rows(Damage):
    """A file of the results store."""

    def whole(self) -> Any:
        (self.folder / "webtech").mkdir()
        return {"schema": 1, **content()}

    def read(self, value: Any) -> None:
        read_run(self.put("webtech/run-a.json", json.dumps(value)))


class Claims(Damage):
    """A file of claims, cut to two of them."""

    def whole(self) -> Any:
        found = yaml.safe_load((ROOT / "data/claims/paper_a.yml").read_text("utf-8"))
        return found | {"claims": found["claims"][:2]}

    def read(self, value: Any) -> None:
        for claim in parse_claims(as_yaml(value), "claims.yml"):
            for setting in claim.settings.values():
                claim.fingerprint(claim.in_setting(setting))


class Grids(Damage):
    """A user's grid, by the command line."""

    def whole(self) -> Any:
        return yaml.safe_load(GRID)

    def read(self, value: Any) -> None:
        command(["sweep", str(self.put("grid.yml", as_yaml(value))), "--dry-run"])


class Tables(Damage):
    """A table of losses, by its cells."""

    def whole(self) -> Any:
        losses = [["n", "p", "pair", "loss"]]
        for n in (1000, 3000, 10_000, 30_000):
            losses += [[n, 1, pair, round(1 + 50 * n**-0.4, 4)] for pair in ("a-b", "a-c")]
        return losses

    def read(self, value: Any) -> None:
        rows = [row if isinstance(row, list) else [row] for row in value]
        text = "\n".join(",".join(map(str, row)) for row in rows)
        command(["fit", str(self.put("losses.csv", text))])


class Labels(Tables):
    """Names of columns and of a pair, which change no number."""

    def whole(self) -> Any:
        return {"column": "", "pair": ""}

    def read(self, value: Any) -> None:
        column, pair = (str(value.get(key, "x")) for key in ("column", "pair"))
        rows = [[n, p, pair, loss, 0] for n, p, _, loss in super().whole()[1::2]]
        table = io.StringIO()
        csv.writer(table).writerows([["n", "p", "pair", "loss", column], *rows])
        shown = command(["fit", str(self.put("losses.csv", table.getvalue())), "--json"])
        assert json.loads(shown)[0]["params"]["alpha"] == pytest.approx(0.4, 0.01)


class Folders(Damage):
    """The JSON files of a Hugging Face model's folder."""

    JSON = ("config.json", "tokenizer.json", "tokenizer_config.json")
    NONE = ("special_tokens_map.json", "added_tokens.json")

    def whole(self) -> Any:
        write_model(self.folder / "m", "nllb", again=True)
        folder = self.folder / "m"
        parsed = {name: json.loads((folder / name).read_text("utf-8")) for name in self.JSON}
        return parsed | {name: {"<mask>": 94} if "added" in name else {} for name in self.NONE}

    def read(self, value: Any) -> None:
        for name in (*self.JSON, *self.NONE):
            (self.folder / "m" / name).unlink(missing_ok=True)
            if name in value:
                self.put(f"m/{name}", json.dumps(value[name]))
        load_trained(self.folder / "m")


class Archives(Damage):
    """Text in gzip and xz, and the archive of a wheel: what is read is what was packed."""

    LINES = [f"line {n} of {n * n}" for n in range(99)]

    def whole(self) -> Any:
        return [0] * 40

    def read(self, value: Any) -> None:
        seed = zlib.crc32(repr(value).encode())
        rng, kind = np.random.default_rng(seed), ("gz", "xz", "tar.xz")[seed % 3]
        text = "\n".join(self.LINES).encode()
        if kind == "tar.xz":
            tar = io.BytesIO()
            with tarfile.open(fileobj=tar, mode="w") as file:
                member = tarfile.TarInfo("a.txt")
                member.size = len(text)
                file.addfile(member, io.BytesIO(text))
            text = tar.getvalue()
        packed = bytearray((gzip if kind == "gz" else lzma).compress(text))
        for at in rng.integers(0, len(packed), 1 + seed % 4):
            packed[at] = int(rng.integers(256))
        del packed[rng.integers(0, 2 * len(packed)) :]
        path = self.folder / f"a.{kind}"
        path.write_bytes(packed)
        if kind != "tar.xz":
            assert read_lines(path) == self.LINES
            return
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(repository, "ARCHIVE", path)
            patch.setenv("MNMT_REPRO_CACHE", str(self.folder))
            try:
                root = repository._root()
            except SystemExit as error:
                raise InputError(error) from error
        assert (root / "a.txt").read_text().splitlines() == self.LINES


def command(arguments: list[str]) -> str:
    """What a command prints; `InputError` where it ends with 2 and one line on standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(arguments)
    if status == 2:
        (line,) = (each for each in err.getvalue().splitlines() if ": note: " not in each)
        raise InputError(line.removeprefix("mnmt-repro: "))
    assert status in (0, 1)
    return out.getvalue()


class Vocabularies(Damage):
    """A SentencePiece model, by its bytes and by its table of characters."""

    def whole(self) -> Any:
        lines = (f"the {n} files of {n * n}\tdie {n} Dateien von {n * n}" for n in range(30))
        data = self.put("a.tsv", "\n".join(["source\ttarget", *lines]))
        command = ["data", "vocabulary", "--data", f"eng-deu={data}", "--pieces", "300"]
        assert main([*command, "--out", str(self.folder / "v.model")]) == 0
        self.model = (self.folder / "v.model").read_bytes()
        return [0] * 40

    def read(self, value: Any) -> None:
        seed = zlib.crc32(repr(value).encode())
        rng = np.random.default_rng(seed)
        made = ModelProto.FromString(self.model)
        spec = made.normalizer_spec
        if seed % 2:
            spec.precompiled_charsmap = rng.bytes(int(rng.integers(1, 64)))
            broken = made.SerializeToString()
        else:
            broken = bytearray(self.model)
            for at in rng.integers(0, len(broken), 1 + seed % 5):
                broken[at] = int(rng.integers(256))
        path = self.folder / "broken.model"
        path.write_bytes(bytes(broken))
        found = Vocabulary.load(path) if seed % 3 else adopt_vocabulary(path, ["eng", "deu"])
        assert len(found.encode(["the file"]).flat) >= 0


KINDS = (
    Runs, Checkpoints, Rows, Claims, Grids, Vocabularies, Tables, Labels, Folders, Archives,
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("tier", ["", pytest.param("nightly", marks=pytest.mark.nightly)])
def test_a_damaged_file_is_read_or_refused(kind: type, tier: str, tmp_path: Path) -> None:
    damage = kind(tmp_path)
    refused = try_all(damage, -(-CASES[tier] // len(KINDS)))
    assert refused > 5  # so that the cases are damage at all


def try_all(damage: Any, cases: int) -> int:
    """Read so many damaged files; the number of those that were refused."""
    refused = 0

    @settings(
        max_examples=cases, deadline=None, derandomize=True, database=None,
        phases=[Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(damaged(damage.whole()))
    def each(value: Any) -> None:
        nonlocal refused
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                damage.read(value)
            except InputError as error:
                assert str(error)
                refused += 1

    each()
    return refused
