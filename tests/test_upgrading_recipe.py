"""The whole upgrade: same function where promised, blocks and optimiser state in their places."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch
from small_text import small_bitext

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.corpora.vocabulary import Vocabulary, VocabularyConfig, train_vocabulary
from mnmt_repro.errors import InputError
from mnmt_repro.model import Transformer
from mnmt_repro.training.checkpoint import Checkpoint, Progress, load_checkpoint, save_checkpoint
from mnmt_repro.upgrading.config import DepthConfig, Ramp, UpgradeConfig, WidthConfig
from mnmt_repro.upgrading.learning_rate import NEW, OLD, diagonal_fisher, fisher_groups
from mnmt_repro.upgrading.recipe import upgrade
from mnmt_repro.upgrading.start import load_upgraded, save_upgraded
from mnmt_repro.upgrading.vocabulary import Piece, PieceMap, match_meanings, match_pieces

SHAPES = {
    "t5": ModelConfig.t5(vocab_size=9, d_model=8, layers=2, heads=2, d_ff=12),
    "fairseq": ModelConfig.fairseq(vocab_size=9, d_model=8, layers=2, heads=2, d_ff=12),
}
SPECIAL = [Piece(kind="special", text=role) for role in ("pad", "eos", "unk", "bos")]
A, B, C, D, E, X, Y = (Piece(kind="text", text=text) for text in "abcdexy")
# New pieces x and y, d dropped, the rest moved.
PIECES = match_meanings([*SPECIAL, A, B, C, D, E], [*SPECIAL, X, C, A, E, Y, B])
MOVED = {4: 6, 5: 9, 6: 5, 8: 7}  # old id -> new id of a, b, c, e
SOURCE = torch.tensor([[5, 6, 8, 1], [4, 8, 1, 0]])
TARGET = torch.tensor([[3, 6, 6, 4], [3, 5, 8, 1]])


def optimiser_of(kind: str, model: Transformer) -> torch.optim.Optimizer:
    if kind == "adamw":
        return torch.optim.AdamW(model.parameters(), lr=0.01)
    return torch.optim.Adafactor(model.parameters(), lr=0.01)


def train_on(model: Transformer, optimiser: torch.optim.Optimizer, steps: int) -> None:
    for _ in range(steps):
        model.loss(SOURCE, TARGET[:, :-1], TARGET[:, 1:]).backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)


def trained(tmp_path: Path, shape: str = "fairseq", kind: str = "adamw") -> Checkpoint:
    """A model of five pieces after seven steps, as read back from disk."""
    model = Transformer(SHAPES[shape], seed=4)
    optimiser = optimiser_of(kind, model)
    train_on(model, optimiser, 7)
    path = tmp_path / "old.safetensors"
    save_checkpoint(path, model, Progress(step=7), identity="old", optimiser=optimiser)
    return load_checkpoint(path)


def moved(ids: torch.Tensor) -> torch.Tensor:
    return ids.clone().apply_(lambda i: MOVED.get(i, i))


# --- what the new model computes ------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_without_noise_the_wide_model_in_a_new_vocabulary_computes_the_same(
    tmp_path: Path, shape: str
) -> None:
    checkpoint = trained(tmp_path, shape)
    config = UpgradeConfig(wider=2, width=WidthConfig(noise=0, normalisation="function"))
    new = upgrade(checkpoint, config, pieces=PIECES).model.eval()
    assert (new.config.d_ff, new.config.vocab_size) == (24, 10)
    before = checkpoint.model().eval()(SOURCE, TARGET)
    after = new(moved(SOURCE), moved(TARGET))
    kept = [0, 1, 2, 3, *MOVED]
    expected = before[..., kept]
    torch.testing.assert_close(
        after[..., [0, 1, 2, 3, *MOVED.values()]], expected, rtol=0, atol=1e-5
    )
    # New pieces score as <unk> does.
    torch.testing.assert_close(after[..., [4, 8]], before[..., [2, 2]], rtol=0, atol=1e-5)


def test_nothing_to_change_changes_nothing(tmp_path: Path) -> None:
    checkpoint = trained(tmp_path)
    made = upgrade(checkpoint, UpgradeConfig())
    assert all(torch.equal(t, checkpoint.weights[k]) for k, t in made.model.state_dict().items())
    assert made.report.overlap is None
    assert (made.report.new_entries, made.steps) == (0, 7)
    for index, state in checkpoint.optimiser.items():
        assert all(torch.equal(made.optimiser[index][key], t) for key, t in state.items())


def test_layers_are_inserted_and_the_old_ones_kept(tmp_path: Path) -> None:
    checkpoint = trained(tmp_path)
    old = checkpoint.weights
    made = upgrade(checkpoint, UpgradeConfig(deeper=DepthConfig(encoder=2, decoder=1)))
    new = made.model.state_dict()
    assert (made.model.config.encoder_layers, made.model.config.decoder_layers) == (4, 3)
    for name, tensor in old.items():
        if name.startswith("encoder."):
            _, layer, rest = name.split(".", 2)
            assert torch.equal(new[f"encoder.{int(layer) + 2}.{rest}"], tensor)
            mean = (old[f"encoder.0.{rest}"] + old[f"encoder.1.{rest}"]) / 2
            torch.testing.assert_close(new[f"encoder.0.{rest}"], mean)
            torch.testing.assert_close(new[f"encoder.1.{rest}"], mean)
        else:
            assert torch.equal(new[name], tensor)
    closest = upgrade(
        checkpoint, UpgradeConfig(deeper=DepthConfig(decoder=1, init="closest"))
    ).model.state_dict()
    name = "cross.q.weight"
    assert torch.equal(closest[f"decoder.2.{name}"], old[f"decoder.1.{name}"])


def test_what_is_not_kept_is_drawn_anew(tmp_path: Path) -> None:
    checkpoint = trained(tmp_path, "t5")
    anew = Transformer(SHAPES["t5"], seed=3).state_dict()
    nothing = upgrade(checkpoint, UpgradeConfig(keep="nothing", seed=3))
    assert all(torch.equal(t, anew[k]) for k, t in nothing.model.state_dict().items())
    assert nothing.optimiser == {}
    body = upgrade(checkpoint, UpgradeConfig(keep="body", seed=3))
    for name, tensor in body.model.state_dict().items():
        table = name in ("embedding.weight", "output.weight")
        assert torch.equal(tensor, anew[name] if table else checkpoint.weights[name])
        assert (body.groups[name] == (NEW if table else OLD)).all()
    tables = (anew[name] for name in ("embedding.weight", "output.weight") if name in anew)
    assert body.report.new_entries == sum(table.numel() for table in tables)
    assert all((group == OLD).all() for group in nothing.groups.values())


# --- blocks and optimiser state -------------------------------------------------------------------


def test_groups_mark_old_and_new_blocks(tmp_path: Path) -> None:
    config = UpgradeConfig(wider=2, deeper=DepthConfig(encoder=1))
    made = upgrade(trained(tmp_path), config, pieces=PIECES)
    parameters = dict(made.model.named_parameters())
    assert made.groups.keys() == parameters.keys()
    old_part = torch.full((24, 8), NEW)
    old_part[:12] = OLD
    layer = "encoder.1.feed_forward"
    whole = {name: made.groups[name].expand(p.shape) for name, p in parameters.items()}
    assert torch.equal(whole[f"{layer}.up.weight"], old_part.byte())
    assert torch.equal(whole[f"{layer}.out.weight"], old_part.byte().T)
    assert whole[f"{layer}.up.bias"].tolist() == [OLD] * 12 + [NEW] * 12
    assert (whole[f"{layer}.out.bias"] == OLD).all()
    assert (whole["encoder.0.attention.q.weight"] == NEW).all()
    assert (whole["encoder.1.attention.q.weight"] == OLD).all()
    assert [int(row[0]) for row in whole["embedding.weight"]] == [1, 1, 1, 1, 0, 1, 1, 1, 0, 1]
    old_entries = sum(int((group == OLD).sum()) for group in whole.values())
    total = sum(p.numel() for p in parameters.values())
    assert (made.report.old_entries, made.report.new_entries) == (old_entries, total - old_entries)
    facts = made.report.facts()
    assert (facts["old"]["feed_forward"], facts["new"]["feed_forward"]) == (12, 24)
    assert (facts["old"]["encoder_layers"], facts["new"]["encoder_layers"]) == (2, 3)
    assert (facts["pieces"]["added"], facts["pieces"]["dropped"]) == (2, 1)


@pytest.mark.parametrize("kind", ["adamw", "adafactor"])
def test_old_parameters_keep_their_optimiser_state(tmp_path: Path, kind: str) -> None:
    checkpoint = trained(tmp_path, kind=kind)
    config = UpgradeConfig(wider=2, deeper=DepthConfig(encoder=1))
    made = upgrade(checkpoint, config, pieces=PIECES)
    names = [name for name, _ in made.model.named_parameters()]
    old_names = [name for name, _ in checkpoint.model().named_parameters()]

    def states(new: str, old: str) -> tuple[dict, dict]:
        return made.optimiser[names.index(new)], checkpoint.optimiser[old_names.index(old)]

    assert not any(
        names[index].startswith("encoder.0.") for index in made.optimiser
    )  # a new layer has no state
    new, old = states("encoder.1.attention.k.weight", "encoder.0.attention.k.weight")
    assert old["step"] == 7
    assert all(torch.equal(new[key], old[key]) for key in old)

    new, old = states("embedding.weight", "embedding.weight")
    second = "exp_avg_sq" if kind == "adamw" else "row_var"
    kept = [0, 1, 2, 3, *MOVED]
    assert torch.equal(new[second][[0, 1, 2, 3, *MOVED.values()]], old[second][kept])
    torch.testing.assert_close(new[second][[4, 8]], old[second].mean(0).expand(2, -1))
    if kind == "adamw":
        assert (new["exp_avg"][[4, 8]] == 0).all() and (new["exp_avg"][3] != 0).any()
    else:
        assert torch.equal(new["col_var"], old["col_var"])

    new, old = states("encoder.1.feed_forward.out.weight", "encoder.0.feed_forward.out.weight")
    across = "exp_avg_sq" if kind == "adamw" else "col_var"
    assert torch.equal(new[across][:, :12], old[across])
    mean = old[across].mean(1, keepdim=True)
    torch.testing.assert_close(new[across][:, 12:], mean.expand(-1, 12))
    if kind == "adafactor":
        assert torch.equal(new["row_var"], old["row_var"])


@pytest.mark.parametrize(
    "changes",
    [{"deeper": DepthConfig(encoder=1)}, {"optimiser": "reset"}, {"keep": "nothing"}],
    ids=["new layers", "a reset", "nothing kept"],
)
def test_adafactors_own_bound_goes_on_with_the_schedule(tmp_path: Path, changes: dict) -> None:
    """Its relative step is at most 1 / sqrt(count): here of the eighth update, in every parameter.

    The first update of a parameter without second moments has the greatest size, which is clipped
    to exactly that.
    """
    made = upgrade(trained(tmp_path, kind="adafactor"), UpgradeConfig(**changes))
    optimiser = torch.optim.Adafactor(made.model.parameters(), lr=1.0)
    made.prepare(made.model, optimiser)
    before = {name: p.detach().clone() for name, p in made.model.named_parameters()}
    train_on(made.model, optimiser, 1)
    steps = {}
    for name, old in before.items():
        moved = (made.model.get_parameter(name).detach() - old).square().mean().sqrt()
        steps[name] = float(moved / old.square().mean().sqrt().clamp_min(1e-3))
    assert max(steps.values()) <= 8**-0.5 * 1.001
    # Without a gradient are the biases of keys alone.
    first = [name for name in steps if name.startswith("encoder.0.") and "k.bias" not in name]
    assert [steps[name] for name in first] == pytest.approx([8**-0.5] * len(first), rel=1e-3)


@pytest.mark.parametrize("schedule", ["reset", "constant"])
def test_adafactors_state_would_hold_another_schedule_down(tmp_path: Path, schedule: str) -> None:
    checkpoint = trained(tmp_path, kind="adafactor")
    with pytest.raises(InputError, match="no relative step above 1 / sqrt.updates"):
        upgrade(checkpoint, UpgradeConfig(schedule=schedule))
    made = upgrade(checkpoint, UpgradeConfig(schedule=schedule, optimiser="reset"))
    made.prepare(made.model, optimiser := optimiser_of("adafactor", made.model))
    assert not optimiser.state
    upgrade(trained(tmp_path), UpgradeConfig(schedule=schedule))  # AdamW's does not


def test_a_constant_rate_is_no_schedule_to_go_on_with(tmp_path: Path) -> None:
    checkpoint = trained(tmp_path)
    constant = dataclasses.replace(checkpoint, progress=Progress(step=7, behind=None))
    with pytest.raises(InputError, match="rate was constant: take --schedule reset"):
        upgrade(constant, UpgradeConfig())
    assert upgrade(constant, UpgradeConfig(schedule="reset")).schedule_start == 0
    further = dataclasses.replace(checkpoint, progress=Progress(step=7, behind=20))
    assert upgrade(further, UpgradeConfig()).schedule_start == 27


def test_another_optimiser_refuses_the_state(tmp_path: Path) -> None:
    made = upgrade(trained(tmp_path), UpgradeConfig())
    with pytest.raises(InputError, match="state is AdamW's, not Adafactor's"):
        made.prepare(made.model, optimiser_of("adafactor", made.model))
    reset = upgrade(trained(tmp_path), UpgradeConfig(optimiser="reset"))
    optimiser = optimiser_of("adafactor", reset.model)
    reset.prepare(reset.model, optimiser)
    kept = optimiser.state_dict()["state"].values()  # nothing but the count of updates
    assert all(float(state.pop("step")) == 7 for state in kept)
    assert not any(moment.any() for state in kept for moment in state.values())


def test_fisher_information_chooses_what_is_slowed_down(tmp_path: Path) -> None:
    made = upgrade(trained(tmp_path), UpgradeConfig(wider=2, optimiser="reset"))
    pairs = [(SOURCE[0], TARGET[0]), (SOURCE[1, :3], TARGET[1])]
    fisher = diagonal_fisher(made.model, pairs)
    middle = fisher["encoder.0.feed_forward.up.weight"].median().item()
    groups = fisher_groups(fisher, made.groups, [middle])
    start = dataclasses.replace(made, groups=groups, gammas=(1.0, 1.0, 0.0))
    before = {name: p.detach().clone() for name, p in start.model.named_parameters()}
    optimiser = optimiser_of("adamw", start.model)
    start.prepare(start.model, optimiser)
    train_on(start.model, optimiser, 1)
    for name, parameter in start.model.named_parameters():
        slowed = (fisher[name] > middle) & (made.groups[name] == OLD)
        assert torch.equal(parameter[slowed], before[name][slowed])
        informed = (fisher[name] > 0) & ~slowed
        assert (parameter[informed] != before[name][informed]).all()
    assert (fisher["encoder.0.feed_forward.up.weight"][12:] > middle).any()  # new, not slowed


def test_factors_by_fisher_information_are_kept_in_the_file(tmp_path: Path) -> None:
    config = UpgradeConfig(wider=2, optimiser="reset", gamma_old=0.5, gamma_new=2.0)
    made = upgrade(trained(tmp_path), config)
    ramp = Ramp(start=0.0, end=0.1, steps=9)
    fisher = diagonal_fisher(made.model, [(SOURCE[0], TARGET[0])])
    groups = fisher_groups(fisher, made.groups, [1e-8, 1e-4])
    start = dataclasses.replace(made, groups=groups, gammas=(2.0, 0.5, 0.25, ramp))
    save_upgraded(tmp_path / "start.safetensors", start)
    found = load_upgraded(tmp_path / "start.safetensors")
    assert found.gammas == (2.0, 0.5, 0.25, ramp)
    assert {int(group.max()) for group in found.groups.values()} <= {0, 1, 2, 3}
    assert all(torch.equal(found.groups[name], group) for name, group in start.groups.items())


# --- vocabularies ---------------------------------------------------------------------------------


def test_from_two_sentencepiece_models(tmp_path: Path) -> None:
    bitext = small_bitext()
    text = {"eng-deu": (bitext.source, bitext.target)}
    old = train_vocabulary(VocabularyConfig(pieces=320, languages=("deu", "eng")), text)
    new = train_vocabulary(VocabularyConfig(pieces=340, languages=("ces", "deu", "eng")), text)
    model = Transformer(dataclasses.replace(SHAPES["t5"], vocab_size=320))
    weights = model.state_dict()
    checkpoint = Checkpoint.of(model)
    config = UpgradeConfig(embeddings="mean", optimiser="reset")
    made = upgrade(checkpoint, config, pieces=match_pieces(old, new))
    assert made.report.overlap is not None and made.report.overlap.share > 0.9
    for table in ("embedding.weight", "output.weight"):
        rows = made.model.state_dict()[table]
        assert torch.equal(rows[new.tag("deu")], weights[table][old.tag("deu")])
        tags = [old.tag("deu"), old.tag("eng")]
        torch.testing.assert_close(rows[new.tag("ces")], weights[table][tags].mean(0))
    with pytest.raises(InputError, match="the old vocabulary has 340 pieces, .* 320 rows"):
        upgrade(checkpoint, config, pieces=match_pieces(new, old))
    with pytest.raises(InputError, match="the new vocabulary is not a SentencePiece model"):
        match_pieces(old, Vocabulary(b"no model"))


# --- refusals -------------------------------------------------------------------------------------


def swapped() -> PieceMap:
    return match_meanings(PIECES.old, [*SPECIAL[::-1], A])


@pytest.mark.parametrize(
    ("config", "pieces", "message"),
    [
        ({}, swapped(), "must begin with <pad>, </s>, <unk>, <s>, in this order"),
        (
            {"embeddings": "mean"},
            dataclasses.replace(PIECES, splits={}),
            "what new pieces split into is not known",
        ),
    ],
)
def test_impossible_upgrades_are_refused(
    tmp_path: Path, config: dict, pieces: PieceMap | None, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        upgrade(trained(tmp_path), UpgradeConfig(**config), pieces=pieces)


def test_damaged_or_unfit_checkpoints_are_refused(tmp_path: Path) -> None:
    checkpoint = trained(tmp_path)
    weights = {**checkpoint.weights, "encoder_norm.weight": torch.ones(7)}
    with pytest.raises(InputError, match=r"encoder_norm.weight is \(7,\), should be \(8,\)"):
        upgrade(dataclasses.replace(checkpoint, weights=weights), UpgradeConfig())
    with pytest.raises(InputError, match=r"output.weight is \(9, 8\), should be absent"):
        weights = {**checkpoint.weights, "output.weight": torch.ones(9, 8)}
        upgrade(dataclasses.replace(checkpoint, weights=weights), UpgradeConfig())
    with pytest.raises(InputError, match="not one of `mnmt-repro upgrade`"):
        load_upgraded(tmp_path / "old.safetensors")
    with pytest.raises(InputError, match="function of a ReLU layer only"):
        shared = UpgradeConfig(wider=2, width=WidthConfig(normalisation="function-shared"))
        upgrade(trained(tmp_path, "t5"), shared)
