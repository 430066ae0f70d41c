"""Placeholder."""

from mnmt_repro.analysis.intervals import NoRowsYet


def _no(evidence, claim, setting):
    raise NoRowsYet("no rows yet")


def capacity_by_interpolation(evidence, claim, setting):
    return _no(evidence, claim, setting)


def fraction_slope_by_interpolation(evidence, claim, setting):
    return _no(evidence, claim, setting)


def exponent_shift_in_regime(evidence, claim, setting):
    return _no(evidence, claim, setting)


def nearer_with_text(evidence, claim, setting):
    return _no(evidence, claim, setting)
