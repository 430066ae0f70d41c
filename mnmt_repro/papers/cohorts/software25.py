"""Paper B's runs on the corpus software25, as cohorts: one for each table or comparison.

A run is named as its row is in the paper; `software25_runs` says what makes it. Each ablation has
its own control: Table 4 neither scales learning rates nor up-samples related languages (footnote
9), Table 5 scales none, Table 6 up-samples no related language.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mnmt_repro.papers.cohorts.languages25 import GROUPINGS
from mnmt_repro.papers.cohorts.software25_runs import (
    CORPUS,
    TextCondition,
    from_scratch,
    slower,
    upgraded,
)
from mnmt_repro.papers.cohorts.variants import Variant, VariantCohort
from mnmt_repro.upgrading.config import Kind, WidthConfig

KINDS: tuple[Kind, ...] = ("same", "wide", "deep")
SUFFIX: dict[Kind, str] = {"same": "", "wide": "-wide", "deep": "-deep"}
_UNSCALED: dict[str, Any] = {"gamma_old": 1.0, "gamma_new": 1.0}
_EARLY: dict[str, Any] = {**_UNSCALED, "related": False}
"""The setup of Table 4 (footnote 9), also that of Table 5's rows but the last, and Table 6's first:
neither learning-rate scaling nor up-sampling of related languages."""
SHARES: dict[Kind, tuple[float, ...]] = {
    "same": (0.1, 0.3), "wide": (0.1, 0.3, 0.5), "deep": (0.1, 0.3, 0.5),
}  # fmt: skip
BASELINE_SHARES = (0.1, 0.3, 0.5, 1.0)


def _central(seeds: tuple[int, ...], condition: TextCondition = "main") -> tuple[Variant, ...]:
    """M20, then baseline and upgrade of each kind, seed by seed; the longest are decoded."""
    original = GROUPINGS["Mt25"].original
    variants = []
    for seed in seeds:
        old = from_scratch("same", languages=original, seed=seed, condition=condition)
        variants.append(Variant(name="M20", updates_share=1.0, spec=old, decode=True))
        for kind in KINDS:
            for prefix, make, shares in (
                ("M25", from_scratch, BASELINE_SHARES),
                ("Mt25", upgraded, SHARES[kind]),
            ):
                for share in shares:
                    spec = make(kind, share=share, seed=seed, condition=condition)
                    name, last = f"{prefix}{SUFFIX[kind]}", share == shares[-1]
                    variants.append(Variant(name=name, updates_share=share, spec=spec, decode=last))
    return tuple(variants)


def _total() -> tuple[Variant, ...]:
    """Upgraded models, and baselines after as many updates as M20 and the upgrade together.

    No baseline is up-sampled, so one upgrade without up-sampling is set against its own, too. And
    one baseline goes on at half the rate, as nearly all weights of the upgrade of its size do.
    """
    plain, halved = upgraded("same", alpha=1.0), slower(share=0.3, gamma_old=0.5)
    variants = [
        Variant(name="Mt25, no up-sampling", updates_share=0.3, spec=plain),
        Variant(name="M25, rate halved", updates_share=1.3, spec=halved),
    ]
    for kind in KINDS:
        share = SHARES[kind][-1]
        new = upgraded(kind, share=share)
        old = from_scratch(kind, share=1 + share)
        variants += [
            Variant(name=f"Mt25{SUFFIX[kind]}", updates_share=share, spec=new),
            Variant(name=f"M25{SUFFIX[kind]}", updates_share=1 + share, spec=old),
        ]
    return tuple(variants)


_Rows = dict[str, tuple[Kind, dict[str, Any]]]
"""Name of a variant to the kind of its upgrade and the changes to the recipe (`upgraded`)."""


def _by_model(rows: dict[Kind, dict[str, dict[str, Any]]], **common: Any) -> _Rows:
    """Rows of a table that is divided by model; `common` are changes that all of them share."""
    return {
        f"Mt25{SUFFIX[kind]}, {name}": (kind, common | changes)
        for kind, settings in rows.items()
        for name, changes in settings.items()
    }


_ALL_NEW: dict[Kind, dict[str, Any]] = {
    "same": {},
    "wide": {"width": WidthConfig(init="random")},
    "deep": {"layers": {"init": "random"}},
}
_TABLE3: dict[Kind, dict[str, dict[str, Any]]] = {
    kind: {
        "full recipe": {},
        "random init all": {"keep": "nothing"},
        "random init new": {"embeddings": "random", **_ALL_NEW[kind]},
        "no up-sampling": {"alpha": 1.0},
        "no learning-rate scaling": _UNSCALED,
    }
    for kind in KINDS
}
"""Settings of each model in Table 3."""
FISHER_SHARES = {"1e-6": 0.5, "1e-5": 0.1, "1e-4": 0.01}
"""Share of the old entries whose Fisher information is above a threshold: ours, since a threshold
in itself says nothing about a model of another size, and the paper's shares are not printed."""
_ABLATIONS: dict[str, tuple[str, _Rows]] = {
    "table4": (
        "ways to initialise what is new: Table 4",
        _by_model(
            {
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
                    "new layers random": {"layers": {"init": "random"}},
                    "closest layer": {"layers": {"init": "closest"}},
                    "average layer": {},
                },
            },
            **_EARLY,
        ),
    ),
    "table5": (
        "up-sampling: Table 5",
        {
            "alpha 1": ("same", {**_EARLY, "alpha": 1.0}),
            "alpha 5": ("same", _EARLY),
            "alpha 10": ("same", {**_EARLY, "alpha": 10.0}),
            "alpha 5, related": ("same", _UNSCALED),
        },
    ),
    "table6": (
        "learning-rate factors of old and new weights: Table 6",
        {
            f"old {old:g}, new {new:g}": (
                "wide",
                {"related": False, "gamma_old": old, "gamma_new": new},
            )
            for old, new in ((1.0, 1.0), (0.5, 5.0), (0.5, 0.5), (0.5, 1.0), (5.0, 5.0))
        },
    ),
    "table11": (
        "learning-rate scaling by Fisher information: Table 11",
        {
            "full recipe": ("wide", {}),
            **{
                f"f {threshold}, gamma {gamma:g}": (
                    "wide",
                    {"fisher_share": FISHER_SHARES[threshold], "gamma_old": gamma},
                )
                for threshold, gammas in (
                    ("1e-6", (0.25, 0.1)),
                    ("1e-5", (0.25, 0.1, 0.05)),
                    ("1e-4", (0.25,)),
                )
                for gamma in gammas
            },
        },
    ),
    "schedule": (
        "what becomes of the learning rate: footnote 7",
        {
            "not reset": ("same", {}),
            "reset": ("same", {"schedule": "reset"}),
            # How small is not said.
            "small constant": ("same", {"schedule": "constant", "rate_divided_by": 10.0}),
            "not reset, optimiser reset": ("same", {"optimiser": "reset"}),  # ours
        },
    ),
    "insertion": (
        "where new layers go: Section 4.2",
        {
            name: ("deep", {"layers": {"encoder_at": encoder, "decoder_at": decoder}})
            for name, encoder, decoder in (
                ("encoder bottom, decoder top", "bottom", "top"),
                ("encoder top, decoder top", "top", "top"),
                ("encoder bottom, decoder bottom", "bottom", "bottom"),
                ("encoder top, decoder bottom", "top", "bottom"),
                ("both middle", "middle", "middle"),
            )
        },
    ),
    "noise": (
        "noise on copied units: footnote 10",
        {
            "noise 0.01": ("wide", _EARLY),
            "no noise": ("wide", {**_EARLY, "width": WidthConfig(noise=0.0)}),
            # Ours: half of the standard deviation of what is copied. M20's eight feed-forward
            # matrices have 0.30 to 0.71 after training, 0.54 in the mean, of which 0.01 is next to
            # nothing; it is half of 0.0198, with which Xavier's rule begins matrices of the
            # published shape.
            "noise 0.27": ("wide", {**_EARLY, "width": WidthConfig(noise=0.27)}),
        },
    ),
}
"""Ablations whose verdict was open after the first round, by the name of their cohort."""
UNSAID: _Rows = {
    "Mt25, full recipe": ("same", {}),
    "Mt25, new 5": ("same", {"gamma_new": 5.0}),
    "Mt25-wide, full recipe": ("wide", {}),
    "Mt25-wide, new 5": ("wide", {"gamma_new": 5.0}),
    "Mt25, random init all": ("same", {"keep": "nothing"}),
    "Mt25, random init all, one rate": ("same", {"keep": "nothing", **_UNSCALED}),
    "Mt25-deep, random init all": ("deep", {"keep": "nothing"}),
    "Mt25-deep, random init all, one rate": ("deep", {"keep": "nothing", **_UNSCALED}),
}
"""What the paper leaves open and may bear on Table 3 (ours)."""


def _at_30(rows: _Rows, seed: int = 1) -> tuple[Variant, ...]:
    """Upgrades after 30 % of the baselines' updates."""
    return tuple(
        Variant(name=name, updates_share=0.3, spec=upgraded(kind, seed=seed, **changes))
        for name, (kind, changes) in rows.items()
    )


def _table3() -> tuple[Variant, ...]:
    return tuple(
        variant
        for kind in KINDS
        for seed in ((1, 2, 3) if kind == "wide" else (1,))
        for variant in _at_30(_by_model({kind: _TABLE3[kind]}), seed)
    )


def _table7() -> tuple[Variant, ...]:
    """Tables 7 and 8: other groupings, their old models, and the baseline that all share."""
    variants = []
    for share in (0.3, 1.0):
        run = from_scratch("wide", share=share, condition="groupings")
        variants.append(Variant(name="M25-wide", updates_share=share, spec=run))
    for name, grouping in GROUPINGS.items():
        run = upgraded("wide", grouping=grouping, condition="groupings")
        assert run.upgrade is not None
        old = Variant(name=grouping.old_model, updates_share=1.0, spec=run.upgrade.parent)
        variants += [old, Variant(name=name, updates_share=0.3, spec=run)]
    return tuple(variants)


FRESH_SEEDS = (4, 5, 6, 7)
"""Seeds of the repeated ablations: four old models, none of which the first round used."""
OURS = ("not reset, optimiser reset", "noise 0.27")
"""Variants of the ablations that no claim reads; they are not repeated."""


def _fresh() -> Iterator[tuple[str, str, tuple[Variant, ...]]]:
    """Every ablation whose verdict was open, and the central comparison, on fresh seeds.

    Upgrades of one seed share an old model, so the claims pair them by seed (`Variants.blocked`).
    """
    for name, (about, rows) in _ABLATIONS.items():
        repeated = {key: row for key, row in rows.items() if key not in OURS}
        variants = tuple(v for seed in FRESH_SEEDS for v in _at_30(repeated, seed))
        yield f"{name}-fresh", f"{about}, on four fresh seeds", variants
    about = "from scratch and upgraded: Table 1, Figure 4, on four fresh seeds"
    yield "main-fresh", about, _central(FRESH_SEEDS)


def _cohorts() -> tuple[VariantCohort, ...]:
    """All of Paper B's runs in the order in which they matter."""
    cut, full = "added languages cut to Table 9's share: Table 1, Figure 4", "the second condition"
    first = {name: (name, about, _at_30(rows)) for name, (about, rows) in _ABLATIONS.items()}
    declared = (
        ("main", f"from scratch and upgraded, {cut}", _central((1, 2, 3))),
        (
            "total",
            "baselines trained for as long as the old model and its upgrade together (ours)",
            _total(),
        ),
        ("table3", "the recipe without one of its parts: Table 3", _table3()),
        *(first[name] for name in ("table4", "table5", "table6", "table11")),
        ("table7", "other divisions into old and new: Tables 7 and 8", _table7()),
        (
            "full",
            f"from scratch and upgraded on all text: {full} of Table 1",
            _central((1,), "full"),
        ),
        *(first[name] for name in ("schedule", "insertion", "noise")),
        ("unsaid", "rates that the paper does not say (ours)", _at_30(UNSAID)),
        *_fresh(),
    )
    return tuple(
        VariantCohort(name=f"{CORPUS}-{name}", about=about, variants=variants)
        for name, about, variants in declared
    )


SOFTWARE25_COHORTS = _cohorts()
