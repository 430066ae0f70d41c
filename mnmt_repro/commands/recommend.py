"""`recommend`: which mixture to train at a model size, from a table of losses."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from mnmt_repro.commands.fit import add_table, by_pair
from mnmt_repro.commands.options import (
    add_command,
    add_json,
    named_numbers,
    print_json,
    read_table,
)
from mnmt_repro.errors import InputError

if TYPE_CHECKING:
    from mnmt_repro.laws.recommendation import Preference


def add(commands: Any) -> None:
    """Declare the command."""
    parser = add_command(
        commands,
        "recommend",
        "recommend the weights of a mixture at one model size, by the law of Eqs. 11 and 12 "
        "fitted to each pair",
        examples=[
            "mnmt-repro recommend losses.csv --n 2e5 --prefer eng-deu=2 eng-zho=1",
            "mnmt-repro recommend losses.csv --n 2e5 --floor eng-deu=3.1",
            "mnmt-repro recommend losses.csv --n 2e5 --equal-regret --json",
        ],
        act=act,
    )
    add_table(parser)
    parser.add_argument(
        "--n", type=float, required=True, metavar="N", help="model size, in the unit of the column"
    )
    wish = parser.add_mutually_exclusive_group(required=True)
    wish.add_argument(
        "--prefer", nargs="+", metavar="PAIR=W", help="least mean loss, pairs counted with W"
    )
    wish.add_argument(
        "--floor", metavar="PAIR=LOSS", help="PAIR must reach LOSS; then the best for the others"
    )
    wish.add_argument(
        "--equal-regret", action="store_true", help="every pair loses as much against being alone"
    )
    parser.add_argument(
        "--relative",
        action="store_true",
        help="with --equal-regret: as a share of the loss that size can reduce",
    )
    parser.add_argument(
        "--form", choices=("eq12", "eq13"), default="eq12", help="shape of the effective fraction"
    )
    add_json(parser)


def _preference(options: argparse.Namespace) -> Preference:
    from mnmt_repro.laws.recommendation import EqualRegret, Floor, Importance

    if options.relative and not options.equal_regret:
        raise InputError("--relative goes with --equal-regret")
    if options.prefer:
        return Importance(weights=named_numbers(options.prefer, "--prefer"))
    if options.floor:
        ((pair, target),) = named_numbers([options.floor], "--floor").items()
        return Floor(pair=pair, target=target)
    return EqualRegret(relative=options.relative)


def act(options: argparse.Namespace) -> int:
    """Print the recommended weights with the losses they should give."""
    from mnmt_repro.laws.fraction import fit_fraction
    from mnmt_repro.laws.recommendation import recommend_weights

    preference = _preference(options)
    frame = read_table(options.file, (options.n_column, options.loss_column, "p", "pair"))
    laws = {
        pair: fit_fraction(
            rows,
            form=options.form,
            n=options.n_column,
            loss=options.loss_column,
            direction=options.direction,
            label=pair,
        )
        for pair, rows in by_pair(frame).items()
    }
    found = recommend_weights(laws, options.n, preference)
    if options.json:
        print_json(
            {
                "n": found.n,
                "weights": found.weights,
                "loss": found.loss,
                "regret": found.regret,
                "notes": list(found.notes),
            }
        )
        return 0
    print(found.summary().to_string(index=False, float_format=lambda x: f"{x:.4f}"))
    for note in found.notes:
        print(f"note: {note}")
    weights = ",".join(f"{p:.4g}" for p in found.weights.values())
    print(f"\nas options of train: --pairs {','.join(found.weights)} --weights {weights}")
    return 0
