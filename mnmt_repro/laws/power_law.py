"""The power law of one mixture weight: Equations 3 and 6 of the scaling paper."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mnmt_repro.laws.checks import (
    Array,
    Direction,
    Errors,
    error_weights,
    run_names,
    same_length,
    vector,
)
from mnmt_repro.laws.shared_exponent import (
    SharedExponentFit,
    fit_shared_exponent,
)

PARAMETERS = ("alpha", "l_inf", "beta")


@dataclass(frozen=True, kw_only=True)
class PowerLawFit(SharedExponentFit):
    """``loss = beta * n**-alpha + l_inf``, fitted. See `fit_power_law`."""

    @property
    def beta(self) -> float:
        """The multiplier, in the unit of `n`."""
        return self.values[2]

    def rows_at(self, *at: ArrayLike) -> Array:
        """Rows (m, 2) at sizes, all of the one group."""
        return np.insert(super().rows_at(*at), 0, 0.0, axis=1)


def fit_power_law(
    n: ArrayLike,
    loss: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    errors: Errors = "absolute",
    direction: Direction = "min",
    ceiling: float | None = None,
    groups: ArrayLike | None = None,
    label: str = "",
) -> PowerLawFit:
    """Fit Eq. 3 (Eq. 6 at one mixture weight) by least squares.

    Parameters
    ----------
    n : (m,)
        Model sizes in parameters, or any other positive scale (examples, steps).
    loss : (m,)
        Losses in nats per token; or a quality with ``direction="max"``, when the law is
        ``score = l_inf - beta * n**-alpha``.
    weights : (m,), optional
        Weights of the squared residuals; by default as `errors` says.
    errors : as in `fit_joint_law`
    direction : ``"min"`` or ``"max"``
    ceiling : float, optional
        Highest `l_inf` of a quality, such as 100 for chrF.
    groups : (m,), optional
        Name of the run of each row. Rows of one run, such as its checkpoints or test sets, are not
        independent; standard errors and intervals then come from runs.
    label : free text kept with the result

    Returns
    -------
    PowerLawFit
        With ``identified=False`` and a reason when fewer than three sizes, a flat loss, a trend
        against the direction or noise leave no unique answer.

    Raises
    ------
    InputError
        Unequal lengths, NaN or infinite values, sizes or weights not above zero.

    Examples
    --------
    >>> fit = fit_power_law([1, 4, 16, 64], [5.0, 3.0, 2.0, 1.5])
    >>> {name: round(value, 6) for name, value in fit.params.items()}
    {'alpha': 0.5, 'l_inf': 1.0, 'beta': 4.0}
    >>> fit_power_law([1, 2], [3.0, 2.0]).reason
    '2 distinct size(s) cannot determine 3 parameters; train more sizes'
    """
    size, y = vector("n", n, positive=True), vector("loss", loss)
    own = error_weights(errors, y) if weights is None else vector("weights", weights, positive=True)
    same_length(n=size, loss=y, weights=own)
    return fit_shared_exponent(
        PowerLawFit.blank(
            PARAMETERS, y, n=size, weights=own, group=(0,) * len(size),
            direction=direction, ceiling=ceiling, label=label, runs=run_names(groups, len(size)),
        )
    )  # fmt: skip
