"""Cohorts that are lists of named runs, as the rows of Paper B's tables are. No torch is needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mnmt_repro.runs.spec import RunSpec


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A run under the name that a cohort has for it."""

    name: str
    updates_share: float  # updates as a fraction of those of the baselines
    spec: RunSpec
    decode: bool = False  # whether its translations are wanted, not only its losses


@dataclass(frozen=True, kw_only=True)
class VariantCohort:
    """A declared list of runs, each with another name, share or seed.

    `about` says in one line what the cohort is for.
    """

    name: str
    about: str
    variants: tuple[Variant, ...]
    tier: str = "mini"
    repeats: str = ""  # as of a grid

    def runs(self) -> Iterator[RunSpec]:
        """All runs, in the order in which they matter."""
        for variant in self.variants:
            yield variant.spec

    def decoded(self) -> Iterator[RunSpec]:
        """Those whose translations are wanted."""
        for variant in self.variants:
            if variant.decode:
                yield variant.spec
