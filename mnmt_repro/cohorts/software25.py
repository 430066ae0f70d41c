"""Paper B's runs on the corpus software25, as cohorts: one for each table or comparison.

A run is named as its row is in the paper; `software25_runs` says what makes it. Each ablation has
its own control: Table 4 neither scales learning rates nor up-samples related languages (footnote
9), Table 5 scales none, Table 6 up-samples no related language.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mnmt_repro.cohorts.languages25 import GROUPINGS
from mnmt_repro.cohorts.software25_runs import (
    CORPUS,
    MINI,
    Condition,
    Tier,
    from_scratch,
    slower,
    upgraded,
)
from mnmt_repro.cohorts.variants import Variant, VariantCohort
from mnmt_repro.runs.spec import RunSpec
from mnmt_repro.upgrading.config import DepthConfig, DepthInit, Kind, Place, WidthConfig

KINDS: tuple[Kind, ...] = ("same", "wide", "deep")
SUFFIX: dict[Kind, str] = {"same": "", "wide": "-wide", "deep": "-deep"}
UNSCALED: dict[str, Any] = {"gamma_old": 1.0, "gamma_new": 1.0}
_EARLY: dict[str, Any] = {**UNSCALED, "related": False}
"""The setup of Table 4 (footnote 9), also that of Table 5's rows but the last, and Table 6's first:
neither learning-rate scaling nor up-sampling of related languages."""
SHARES: dict[Kind, tuple[float, ...]] = {
    "same": (0.1, 0.3), "wide": (0.1, 0.3, 0.5), "deep": (0.1, 0.3, 0.5),
}  # fmt: skip
BASELINE_SHARES = (0.1, 0.3, 0.5, 1.0)


def _central(
    tier: Tier, seeds: tuple[int, ...], condition: Condition = "main"
) -> tuple[Variant, ...]:
    """M20, then baseline and upgrade of each kind, seed by seed; the longest are decoded."""
    original = GROUPINGS["Mt25"].original
    variants = []
    for seed in seeds:
        old = from_scratch(tier, "same", languages=original, seed=seed, condition=condition)
        variants.append(Variant(name="M20", updates_share=1.0, spec=old, decode=True))
        for kind in KINDS:
            for prefix, make, shares in (
                ("M25", from_scratch, BASELINE_SHARES),
                ("Mt25", upgraded, SHARES[kind]),
            ):
                for share in shares:
                    spec = make(tier, kind, share=share, seed=seed, condition=condition)
                    name, last = f"{prefix}{SUFFIX[kind]}", share == shares[-1]
                    variants.append(Variant(name=name, updates_share=share, spec=spec, decode=last))
    return tuple(variants)


def _total(tier: Tier) -> tuple[Variant, ...]:
    """Upgraded models, and baselines after as many updates as M20 and the upgrade together.

    No baseline is up-sampled, so one upgrade without up-sampling is set against its own, too. And
    one baseline goes on at half the rate, as nearly all weights of the upgrade of its size do.
    """
    plain, halved = upgraded(tier, "same", alpha=1.0), slower(tier, share=0.3, gamma_old=0.5)
    variants = [
        Variant(name="Mt25, no up-sampling", updates_share=0.3, spec=plain),
        Variant(name="M25, rate halved", updates_share=1.3, spec=halved),
    ]
    for kind in KINDS:
        share = SHARES[kind][-1]
        new = upgraded(tier, kind, share=share)
        old = from_scratch(tier, kind, share=1 + share)
        variants += [
            Variant(name=f"Mt25{SUFFIX[kind]}", updates_share=share, spec=new),
            Variant(name=f"M25{SUFFIX[kind]}", updates_share=1 + share, spec=old),
        ]
    return tuple(variants)


def _at_30(rows: dict[str, RunSpec]) -> tuple[Variant, ...]:
    return tuple(Variant(name=name, updates_share=0.3, spec=run) for name, run in rows.items())


def _table3(tier: Tier) -> tuple[Variant, ...]:
    all_new: dict[Kind, dict[str, Any]] = {
        "same": {},
        "wide": {"width": WidthConfig(init="random")},
        "deep": {
            "deeper": DepthConfig(encoder=tier.deeper, decoder=tier.deeper, init="random")
        },
    }  # fmt: skip
    variants: list[Variant] = []
    for kind in KINDS:
        seeds = (1, 2, 3) if kind == "wide" else (1,)
        settings: dict[str, dict[str, Any]] = {
            "full recipe": {},
            "random init all": {"keep": "nothing"},
            "random init new": {"embeddings": "random", **all_new[kind]},
            "no up-sampling": {"alpha": 1.0},
            "no learning-rate scaling": UNSCALED,
        }
        for seed in seeds:
            variants += _at_30(
                {
                    f"Mt25{SUFFIX[kind]}, {name}": upgraded(tier, kind, seed=seed, **changes)
                    for name, changes in settings.items()
                }
            )
    return tuple(variants)


def _table4(tier: Tier, seed: int = 1) -> tuple[Variant, ...]:
    def layers(init: DepthInit) -> dict[str, Any]:
        return {"deeper": DepthConfig(encoder=tier.deeper, decoder=tier.deeper, init=init)}

    rows: dict[Kind, dict[str, dict[str, Any]]] = {
        "same": {
            "all embeddings random": {"keep": "body"},
            "new embeddings random": {"embeddings": "random"},
            "new embeddings from unk": {},
            "new embeddings mean": {"embeddings": "mean"},  # ours
        },
        "wide": {
            "new units random": {"width": WidthConfig(init="random")},
            "linear interpolation": {"width": WidthConfig(init="interpolation")},
            "concatenation": {},
        },
        "deep": {
            "new layers random": layers("random"),
            "closest layer": layers("closest"),
            "average layer": {},
        },
    }
    return _at_30(
        {
            f"Mt25{SUFFIX[kind]}, {name}": upgraded(tier, kind, seed=seed, **_EARLY, **changes)
            for kind in KINDS
            for name, changes in rows[kind].items()
        }
    )


def _table5(tier: Tier, seed: int = 1) -> tuple[Variant, ...]:
    rows = {
        f"alpha {a:g}": upgraded(tier, "same", seed=seed, alpha=a, **_EARLY)
        for a in (1.0, 5.0, 10.0)
    }
    return _at_30(rows | {"alpha 5, related": upgraded(tier, "same", seed=seed, **UNSCALED)})


def _table6(tier: Tier, seed: int = 1) -> tuple[Variant, ...]:
    gammas = ((1.0, 1.0), (0.5, 5.0), (0.5, 0.5), (0.5, 1.0), (5.0, 5.0))
    return _at_30(
        {
            f"old {old:g}, new {new:g}": upgraded(
                tier, "wide", seed=seed, related=False, gamma_old=old, gamma_new=new
            )
            for old, new in gammas
        }
    )


def _table7(tier: Tier) -> tuple[Variant, ...]:
    """Tables 7 and 8: other groupings, their old models, and the baseline that all share."""
    variants = []
    for share in (0.3, 1.0):
        run = from_scratch(tier, "wide", share=share, condition="groupings")
        variants.append(Variant(name="M25-wide", updates_share=share, spec=run))
    for name, grouping in GROUPINGS.items():
        run = upgraded(tier, "wide", grouping=grouping, condition="groupings")
        assert run.upgrade is not None
        old = Variant(name=grouping.old_model, updates_share=1.0, spec=run.upgrade.parent)
        variants += [old, Variant(name=name, updates_share=0.3, spec=run)]
    return tuple(variants)


FISHER_SHARES = {"1e-6": 0.5, "1e-5": 0.1, "1e-4": 0.01}
"""Share of the old entries whose Fisher information is above a threshold: ours, since a threshold
in itself says nothing about a model of another size, and the paper's shares are not printed."""


def _table11(tier: Tier, seed: int = 1) -> tuple[Variant, ...]:
    rows = {"full recipe": upgraded(tier, "wide", seed=seed)}
    for threshold, gammas in (
        ("1e-6", (0.25, 0.1)),
        ("1e-5", (0.25, 0.1, 0.05)),
        ("1e-4", (0.25,)),
    ):
        for gamma in gammas:
            rows[f"f {threshold}, gamma {gamma:g}"] = upgraded(
                tier,
                "wide",
                seed=seed,
                fisher_share=FISHER_SHARES[threshold],
                gamma_old=gamma,
            )
    return _at_30(rows)


def _schedule(tier: Tier, seed: int = 1) -> tuple[Variant, ...]:
    small = tier.training.learning_rate / 10  # a tenth of the peak; how small is not said
    return _at_30(
        {
            "not reset": upgraded(tier, "same", seed=seed),
            "reset": upgraded(tier, "same", seed=seed, schedule="reset"),
            "small constant": upgraded(
                tier, "same", seed=seed, schedule="constant", learning_rate=small
            ),
            "not reset, optimiser reset": upgraded(  # ours
                tier, "same", seed=seed, optimiser="reset"
            ),
        }
    )


def _insertion(tier: Tier, seed: int = 1) -> tuple[Variant, ...]:
    places: dict[str, tuple[Place, Place]] = {
        "encoder bottom, decoder top": ("bottom", "top"),
        "encoder top, decoder top": ("top", "top"),
        "encoder bottom, decoder bottom": ("bottom", "bottom"),
        "encoder top, decoder bottom": ("top", "bottom"),
        "both middle": ("middle", "middle"),
    }
    return _at_30(
        {
            name: upgraded(
                tier,
                "deep",
                seed=seed,
                deeper=DepthConfig(
                    encoder=tier.deeper, decoder=tier.deeper, encoder_at=encoder, decoder_at=decoder
                ),
            )
            for name, (encoder, decoder) in places.items()
        }
    )


def _noise(tier: Tier, seed: int = 1) -> tuple[Variant, ...]:
    rows: dict[str, dict[str, Any]] = {
        "noise 0.01": {},
        "no noise": {"width": WidthConfig(noise=0.0)},
    }
    if tier == MINI:
        # Ours: half of the standard deviation of what is copied. M20's eight feed-forward matrices
        # have 0.30 to 0.71 after training, 0.54 in the mean, of which 0.01 is next to nothing; it
        # is half of 0.0198, with which Xavier's rule begins matrices of the published shape.
        rows["noise 0.27"] = {"width": WidthConfig(noise=0.27)}
    return _at_30(
        {
            name: upgraded(tier, "wide", seed=seed, **_EARLY, **changes)
            for name, changes in rows.items()
        }
    )


def _unsaid(tier: Tier) -> tuple[Variant, ...]:
    """What the paper leaves open and may bear on Table 3 (ours)."""
    return _at_30(
        {
            "Mt25, full recipe": upgraded(tier, "same"),
            "Mt25, new 5": upgraded(tier, "same", gamma_new=5.0),
            "Mt25-wide, full recipe": upgraded(tier, "wide"),
            "Mt25-wide, new 5": upgraded(tier, "wide", gamma_new=5.0),
            "Mt25, random init all": upgraded(tier, "same", keep="nothing"),
            "Mt25, random init all, one rate": upgraded(tier, "same", keep="nothing", **UNSCALED),
            "Mt25-deep, random init all": upgraded(tier, "deep", keep="nothing"),
            "Mt25-deep, random init all, one rate": upgraded(
                tier, "deep", keep="nothing", **UNSCALED
            ),
        }
    )


FRESH_SEEDS = (4, 5, 6, 7)
"""Seeds of the repeated ablations: four old models, none of which the first round used."""
OURS = ("not reset, optimiser reset", "noise 0.27")
"""Variants of the ablations that no claim reads; they are not repeated."""


# Ablations whose verdict was open after the first round, by the name of their cohort.
_OPEN: dict[str, tuple[str, Callable[..., tuple[Variant, ...]]]] = {
    "table4": ("ways to initialise what is new: Table 4", _table4),
    "table5": ("up-sampling: Table 5", _table5),
    "table6": ("learning-rate factors of old and new weights: Table 6", _table6),
    "table11": ("learning-rate scaling by Fisher information: Table 11", _table11),
    "schedule": ("what becomes of the learning rate: footnote 7", _schedule),
    "insertion": ("where new layers go: Section 4.2", _insertion),
    "noise": ("noise on copied units: footnote 10", _noise),
}


def _fresh(tier: Tier) -> Iterator[tuple[str, str, tuple[Variant, ...]]]:
    """Every ablation whose verdict was open, and the central comparison, on fresh seeds.

    Upgrades of one seed share an old model, so the claims pair them by seed (`Study.blocked`).
    """
    main = ("from scratch and upgraded: Table 1, Figure 4", lambda t, seed: _central(t, (seed,)))
    for name, (about, rows) in {**_OPEN, "main": main}.items():
        every = (variant for seed in FRESH_SEEDS for variant in rows(tier, seed))
        kept = tuple(variant for variant in every if variant.name not in OURS)
        yield f"{name}-fresh", f"{about}, on four fresh seeds", kept


def cohorts(tier: Tier = MINI) -> tuple[VariantCohort, ...]:
    """All of Paper B's runs at one tier, in the order in which they matter."""
    cut, full = "added languages cut to Table 9's share: Table 1, Figure 4", "the second condition"
    first = {name: (name, about, rows(tier)) for name, (about, rows) in _OPEN.items()}
    found = (
        ("main", f"from scratch and upgraded, {cut}", _central(tier, (1, 2, 3))),
        (
            "total",
            "baselines trained for as long as the old model and its upgrade together (ours)",
            _total(tier),
        ),
        ("table3", "the recipe without one of its parts: Table 3", _table3(tier)),
        *(first[name] for name in ("table4", "table5", "table6", "table11")),
        ("table7", "other divisions into old and new: Tables 7 and 8", _table7(tier)),
        (
            "full",
            f"from scratch and upgraded on all text: {full} of Table 1",
            _central(tier, (1,), "full"),
        ),
        *(first[name] for name in ("schedule", "insertion", "noise")),
        ("unsaid", "rates that the paper does not say (ours)", _unsaid(tier)),
        *_fresh(tier),
    )
    return tuple(
        VariantCohort(name=f"{CORPUS}-{name}", about=about, variants=variants, tier=tier.name)
        for name, about, variants in found
    )


SOFTWARE25_COHORTS = cohorts()
