"""The training loop: schedule, budgets, optimisers, accounting, and what can be learned."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from small_runs import EASY, EVEN, PAIRS, adamw, fairseq, same_weights, sentences, small_data, t5

from mnmt_repro.corpora.batches import BatchStream
from mnmt_repro.corpora.conlang import irreducible_entropy
from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.errors import InputError
from mnmt_repro.model import Transformer
from mnmt_repro.scoring import cross_entropy
from mnmt_repro.training import loop
from mnmt_repro.training.checkpoint import load_checkpoint
from mnmt_repro.training.config import LAST, STEM, TrainingConfig
from mnmt_repro.training.loop import TrainingData, train

ONE = Mixture.of({"src-aaa": 1.0})


def run(folder: Path, config: TrainingConfig, data=None, mixture=EVEN, model=None, **options):
    return train(
        model or t5(), config, data or small_data(), mixture, folder,
        **{"seed": 1, "progress_bar": False, **options},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("behind", "rates"),
    [(0, [0.2, 0.4, 0.6]), (3, [0.8, 0.8 * 0.8**0.5, 0.8 * (2 / 3) ** 0.5]), (None, [0.8] * 3)],
)
def test_a_schedule_may_lie_behind_or_be_constant(
    tmp_path: Path, behind: int | None, rates: list[float]
) -> None:
    config = adamw(learning_rate=0.8, warmup_steps=4, steps=3, curve_points=100, clip_norm=0.01)
    seen = []

    def watch(_: Transformer, optimiser: torch.optim.Optimizer) -> None:
        optimiser.register_step_pre_hook(lambda *_: seen.append(optimiser.param_groups[0]["lr"]))

    _, progress = run(tmp_path, config, schedule_start=behind, prepare=watch)
    assert progress.behind == load_checkpoint(tmp_path / LAST).progress.behind == behind
    assert seen == pytest.approx(rates)  # what the optimiser was given
    curve = {point["step"]: point["learning_rate"] for point in progress.curve}
    assert list(curve.values()) == pytest.approx(rates)


def test_validations_are_spaced_evenly_in_log_tokens() -> None:
    config = adamw(target_tokens=64_000, curve_points=4)
    assert config.curve_tokens() == [1000, 4000, 16_000, 64_000]
    assert adamw(steps=10, curve_points=1).curve_tokens() == [1280]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "either as target_tokens or as steps"),
        ({"steps": 1, "learning_rate": math.nan}, "learning_rate must be a number, got nan"),
        ({"steps": 1, "label_smoothing": 1.0}, "label_smoothing must be at least 0 and below 1"),
        ({"steps": 1, "optimiser": "sgd"}, "optimiser must be one of adafactor, adamw"),
    ],
)
def test_impossible_settings_are_refused(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        adamw(**options)


def easy_data() -> TrainingData:
    whole = small_data(EASY)
    held = sentences(EASY, "src-aaa", 300)
    return TrainingData(sentences=whole.sentences, validation={"src-aaa": held})


def test_adamw_nears_the_known_entropy(tmp_path: Path) -> None:
    """H(target | source) is exactly known; no model can be better, and a good one gets there."""
    model, progress = run(tmp_path, adamw(steps=230), easy_data(), ONE, t5(EASY))
    losses = [point["cross_entropy"] for point in progress.curve]
    floor = irreducible_entropy(EASY, "src-aaa")
    # What these very sentences would cost a perfect model differs a little from its expectation.
    held = sentences(EASY, "src-aaa", 300)
    assert losses[0] > 3 * floor
    assert floor - 0.03 < losses[-1] < floor + 0.06
    assert losses[-1] == cross_entropy(model, held)


def test_a_budget_in_steps_and_the_accounting(tmp_path: Path) -> None:
    """Steps, tokens and sentences of each pair equal a direct count over the stream."""
    mixture = Mixture.two(*PAIRS, 0.3)
    _, progress = run(tmp_path, adamw(steps=9), mixture=mixture)
    stream = BatchStream(small_data().sentences, mixture, batch_tokens=128, seed=1)
    tokens, count = [0, 0], [0, 0]
    batches = list(itertools.islice(stream.batches(), 9))
    for _, batch in batches:
        for row, pair in zip(batch.target, batch.pair, strict=True):
            tokens[pair] += int((row != 0).sum()) - 1  # the start token is given, not predicted
            count[pair] += 1
    assert progress.step == 9
    assert progress.pair_tokens == tokens
    assert progress.pair_sentences == count
    assert progress.target_tokens == sum(tokens)
    assert progress.position == batches[-1][0]


def test_a_budget_in_tokens_ends_with_the_step_that_fills_it(tmp_path: Path) -> None:
    _, progress = run(tmp_path, adamw(target_tokens=700))
    stream = BatchStream(small_data().sentences, EVEN, batch_tokens=128, seed=1)
    sizes = [
        int((batch.target[:, 1:] != 0).sum())
        for _, batch in itertools.islice(stream.batches(), progress.step)
    ]
    assert sum(sizes[:-1]) < 700 <= sum(sizes) == progress.target_tokens


def test_the_log_holds_the_learning_curve(tmp_path: Path) -> None:
    _, progress = run(tmp_path, adamw(steps=6, curve_points=2))
    lines = (tmp_path / "log.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == progress.curve


def test_clipping_bounds_the_gradient(tmp_path: Path, monkeypatch) -> None:
    """Under plain gradient descent the weights move by learning rate times clipped norm."""
    monkeypatch.setattr(
        loop, "make_optimiser", lambda model, config: torch.optim.SGD(model.parameters(), lr=1.0)
    )
    config = adamw(steps=1, warmup_steps=0, learning_rate=0.5, clip_norm=0.125)
    moved = {}
    for name, each in (("clipped", config), ("free", replace(config, clip_norm=None))):
        model, _ = run(tmp_path / name, each)
        start = Transformer(t5(), seed=1)
        parts = zip(model.parameters(), start.parameters(), strict=True)
        moved[name] = math.sqrt(sum(float(((a - b) ** 2).sum().detach()) for a, b in parts))
    assert moved["clipped"] == pytest.approx(0.5 * 0.125, rel=1e-3)
    assert moved["free"] > 2 * moved["clipped"]


def test_the_best_weights_are_kept_and_returned(tmp_path: Path, monkeypatch) -> None:
    """Validation is scripted: best at the second of three points."""
    snapshots, script = [], iter([3.0, 3.0, 1.0, 1.0, 2.0, 2.0])

    def scripted(model: Transformer, text: object) -> float:
        snapshots.append({name: value.clone() for name, value in model.state_dict().items()})
        return next(script)

    monkeypatch.setattr(loop, "cross_entropy", scripted)
    model, progress = run(tmp_path, adamw(steps=20, curve_points=3, keep="best"))
    assert len(progress.curve) == 6
    assert progress.best == 1.0
    for name, value in model.state_dict().items():
        assert torch.equal(value, snapshots[2][name])
    last = load_checkpoint(tmp_path / "last.safetensors").model()
    best = load_checkpoint(tmp_path / "best.safetensors").model()
    assert same_weights(best, model)
    assert not same_weights(last, model)


def test_a_run_without_gain_ends_and_stays_ended(tmp_path: Path, monkeypatch) -> None:
    """Best at the third of ten points; two without gain follow, and a further call adds none."""
    script = iter([9.0, 9.0, 8.0, 8.0, 7.0, 7.0, 6.0, 9.0, 7.0, 7.0])
    monkeypatch.setattr(loop, "cross_entropy", lambda model, text: next(script))
    config = adamw(steps=40, curve_points=10, keep="best", stop_after=2)
    for _ in range(2):
        model, progress = run(tmp_path, config)
        assert len(progress.curve) == 10 and progress.step < 40
        assert loop.finished(progress, config) and progress.best == 7.0


def test_bfloat16_autocast_trains_on_a_processor(tmp_path: Path) -> None:
    found = {}
    for precision in ("float32", "bfloat16"):
        model, progress = run(tmp_path / precision, adamw(steps=6, precision=precision))
        found[precision] = progress.curve[-1]["train_loss"]
        assert all(parameter.dtype is torch.float32 for parameter in model.parameters())
    assert found["bfloat16"] == pytest.approx(found["float32"], rel=0.02)
    assert found["bfloat16"] != found["float32"]


@pytest.mark.parametrize("shape", [t5, fairseq])
def test_layers_that_are_computed_again_give_the_same_run(shape, tmp_path: Path) -> None:
    config = adamw(steps=5, precision="bfloat16", accumulate=2)
    (kept, told), (again, retold) = (
        run(tmp_path / str(recompute), config, model=shape(dropout=0.2), recompute=recompute)
        for recompute in (False, True)
    )
    assert same_weights(kept, again)
    for a, b in zip(told.curve, retold.curve, strict=True):
        assert {**a, "seconds": 0} == {**b, "seconds": 0}


def test_the_rate_decays_to_zero_over_the_last_share(tmp_path: Path) -> None:
    seen = []

    def watch(_: Transformer, optimiser: torch.optim.Optimizer) -> None:
        optimiser.register_step_pre_hook(lambda *_: seen.append(optimiser.param_groups[0]["lr"]))

    config = adamw(learning_rate=0.01, warmup_steps=1, steps=10, decay_share=0.4, curve_points=1)
    run(tmp_path, config, prepare=watch)
    plain = [config.rate(step) for step in range(1, 11)]
    assert seen == pytest.approx([*plain[:7], plain[7] * 0.75, plain[8] * 0.5, plain[9] * 0.25])
    # The state before the first slower step is kept, for longer runs to start from.
    assert load_checkpoint(tmp_path / STEM).progress.step == 7


def test_the_decay_follows_target_tokens_where_the_budget_does() -> None:
    config = adamw(target_tokens=1000, decay_share=0.3)
    assert config.trunk_tokens == pytest.approx(700)
    assert not config.decays(step=9, target_tokens=699)
    assert config.decays(step=9, target_tokens=701)
    assert config.decay(config.share_spent(9, 850)) == pytest.approx(0.5)
    assert not adamw(target_tokens=1000).decays(step=9, target_tokens=999)


@pytest.mark.parametrize("parts", [5, 40])  # 40: more than there are sentences
def test_a_batch_in_parts_has_the_same_gradient(parts: int, tmp_path: Path, monkeypatch) -> None:
    found: list[dict[str, torch.Tensor]] = []

    class Keeping(torch.optim.SGD):
        def step(self, closure=None) -> None:
            weights = [p for group in self.param_groups for p in group["params"]]
            found.append({str(i): p.grad.clone() for i, p in enumerate(weights)})

    monkeypatch.setattr(
        loop, "make_optimiser", lambda model, config: Keeping(model.parameters(), lr=1.0)
    )
    for accumulate in (1, parts):
        _, progress = run(tmp_path / str(accumulate), adamw(steps=2, accumulate=accumulate))
    once, again = found[:2], found[2:]
    assert len(again) == 2 and max(float(g.abs().max()) for g in once[0].values()) > 0.01
    for before, after in zip(once, again, strict=True):
        assert max(float((before[k] - after[k]).abs().max()) for k in before) < 1e-6
    losses = [json.loads((tmp_path / n / "log.jsonl").read_text().splitlines()[-1]) for n in
              ("1", str(parts))]  # fmt: skip
    assert losses[0]["train_loss"] == pytest.approx(losses[1]["train_loss"], abs=1e-6)


def test_weights_of_the_loss_multiply_each_pairs_tokens(tmp_path: Path, monkeypatch) -> None:
    """Eq. 4: drawn evenly with loss weight w, a pair's tokens count 2 w times."""
    gradients = {}
    monkeypatch.setattr(torch.optim.AdamW, "step", lambda self: gradients.update(
        {i: p.grad.clone() for i, p in enumerate(self.param_groups[0]["params"])}
    ))  # fmt: skip
    weights = dict(zip(PAIRS, (0.05, 0.95), strict=True))
    config, data = adamw(steps=1, loss_weights=weights), small_data()
    model, _ = train(t5(), config, data, EVEN, tmp_path, seed=1)
    _, batch = next(loop.batch_stream(data, EVEN, config, 1).batches())
    source, target = torch.from_numpy(batch.source), torch.from_numpy(batch.target)
    scores = model(source, target[:, :-1]).transpose(1, 2)
    losses = F.cross_entropy(scores, target[:, 1:], ignore_index=0, reduction="none")
    factor = torch.tensor([0.1, 1.9])[torch.from_numpy(batch.pair)]
    loss = (losses * factor[:, None]).sum() / (target[:, 1:] != 0).sum()
    for i, expected in enumerate(torch.autograd.grad(loss, list(model.parameters()))):
        assert torch.allclose(gradients[i], expected, rtol=1e-3, atol=1e-6)


def test_text_is_drawn_by_the_first_weights_for_their_share(tmp_path: Path) -> None:
    text = small_data(finite=0)
    first = dict(zip(PAIRS, (0.99, 0.01), strict=True))
    config = adamw(steps=20, first_weights=first, first_share=0.75)
    then = Mixture.two(*PAIRS, 0.01)
    _, progress = train(t5(), config, text, then, tmp_path, seed=1)
    assert progress.changed == 1  # the rest of the first window is left
    assert 0.7 < progress.pair_tokens[0] / progress.target_tokens < 0.8


@pytest.mark.parametrize("name", ["loss_weights", "first_weights"])
def test_weights_of_other_pairs_are_refused(tmp_path: Path, name: str) -> None:
    config = adamw(steps=2, **{name: {"src-aaa": 1.0}})
    with pytest.raises(InputError, match=rf"{name}: must give a weight .* src-aaa, src-bbb"):
        train(t5(), config, small_data(), EVEN, tmp_path, seed=1)
