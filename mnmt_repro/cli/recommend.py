"""`recommend`: which mixture to train at a model size, from a table of losses."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnmt_repro.atomic import write_bytes
from mnmt_repro.cli import COMMANDS
from mnmt_repro.cli.fit import (
    TableOptions,
    by_pair,
    note_on_errors,
    notes_on_rows,
    of_pair,
    read_losses,
    say,
)
from mnmt_repro.cli.options import (
    add_command,
    add_fields,
    add_json,
    comma_list,
    named_numbers,
    print_json,
    read_fields,
)
from mnmt_repro.errors import InputError

if TYPE_CHECKING:
    from mnmt_repro.laws.recommendation import Preference


def add(commands: Any) -> None:
    """Declare the command."""
    parser = add_command(
        commands,
        "recommend",
        COMMANDS["recommend"],
        examples=[
            "mnmt-repro recommend losses.csv --n 2e5 --prefer eng-deu=2,eng-zho=1",
            "mnmt-repro recommend losses.csv --n 2e5 --floor eng-deu=3.1",
            "mnmt-repro recommend losses.csv --n 2e5 --equal-regret --json",
            "mnmt-repro recommend losses.csv --n 2e5 --equal-regret --frontier frontier.csv",
        ],
        act=act,
    )
    add_fields(parser, TableOptions)
    parser.add_argument(
        "--n", type=float, required=True, metavar="N", help="model size, in the unit of the column"
    )
    wish = parser.add_mutually_exclusive_group(required=True)
    wish.add_argument(
        "--prefer",
        action="append",
        metavar="PAIR=W,...",
        help="minimise the mean loss with W as weight of each pair; a list, or once for each pair",
    )
    wish.add_argument(
        "--floor",
        action="append",
        metavar="PAIR=LOSS",
        help="PAIR must reach LOSS; then the best for the others",
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
    parser.add_argument(
        "--frontier",
        type=Path,
        metavar="OUT.csv",
        help="also write what every mixture is predicted to give at this size, with its interval: "
        "a row a mixture (point) and pair",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="print weights although the effective fraction of a pair is not identified",
    )
    add_json(parser)


def _preference(options: argparse.Namespace, pairs: set[str]) -> Preference:
    from mnmt_repro.laws.recommendation import EqualRegret, Floor, Importance

    there = f"the table has {', '.join(sorted(pairs))}"
    if options.prefer is not None:
        wishes = [wish for text in options.prefer for wish in comma_list(text)]
        weights = named_numbers(wishes, "--prefer")
        if set(weights) != pairs:
            named = ", ".join(sorted(weights)) or "no pair"
            raise InputError(f"--prefer names {named}; {there}: give each of them a weight")
        if min(weights.values()) < 0 or not max(weights.values()) > 0:
            raise InputError(f"--prefer {','.join(wishes)}: no number below 0, and one above it")
        return Importance(weights=weights)
    if options.floor is not None:
        if len(options.floor) > 1:
            given = " and ".join(options.floor)
            raise InputError(f"--floor: given as {given}; one pair can have a floor")
        ((pair, target),) = named_numbers(options.floor, "--floor").items()
        if pair not in pairs:
            raise InputError(f"--floor names {pair}; {there}")
        return Floor(pair=pair, target=target)
    return EqualRegret(relative=options.relative)


def act(options: argparse.Namespace) -> int:
    """Print the recommended weights with the losses they should give; 1 where they are refused."""
    from mnmt_repro.laws.fraction import fit_fraction
    from mnmt_repro.laws.frontier import frontier
    from mnmt_repro.laws.recommendation import LEVEL, recommend_weights

    if options.relative and not options.equal_regret:
        raise InputError("--relative goes with --equal-regret")
    if options.frontier and options.frontier.exists():
        raise InputError(f"--frontier {options.frontier}: is there already; name another file")
    given = read_fields(options, TableOptions)
    frame = read_losses(given, needed=("p", "pair"))
    say(notes_on_rows(frame, options.n_column, options.loss_column, options.direction))
    pairs = by_pair(frame)
    if len(pairs) < 2:
        raise InputError(
            f"{options.file}: rows of {', '.join(pairs)} alone; a trade-off needs two pairs or more"
        )
    preference = _preference(options, set(pairs))
    laws = {}
    for pair, rows in pairs.items():
        with of_pair(pair):
            laws[pair] = fit_fraction(
                rows,
                form=options.form,
                n=options.n_column,
                loss=options.loss_column,
                direction=options.direction,
                ceiling=options.ceiling,
                errors=options.errors,
                groups=options.groups,
                label=pair,
            )
    doubts = [f"{pair}: {doubt}" for pair, law in laws.items() for doubt in law.doubts()]
    if doubts:
        say([f"the effective fraction is not identified. {doubt}" for doubt in doubts])
        if not options.force:
            print(
                "mnmt-repro: no recommendation; add the runs that the notes name, try --form eq13, "
                "or print the weights all the same with --force",
                file=sys.stderr,
            )
            return 1
    found = recommend_weights(laws, options.n, preference)
    say(note_on_errors(laws.values()))
    if options.frontier:
        curve = frontier(laws, options.n, level=LEVEL).rename(columns={"loss": options.loss_column})
        try:
            write_bytes(options.frontier, curve.to_csv(index=False).encode())
        except OSError as error:
            why = f"cannot be written: {error.strerror}"
            raise InputError(f"--frontier {options.frontier}: {why}") from error
        print(f"mnmt-repro: wrote {options.frontier}", file=sys.stderr)
    if options.json:
        print_json(asdict(found))
        return 0
    table = found.summary().rename(columns={"loss": options.loss_column})
    print(table.to_string(index=False, float_format=lambda x: f"{x:.4f}"))
    print(
        f"p_low, p_high: {LEVEL:.0%} interval of the weights\n"
        f"low, high: {LEVEL:.0%} interval of the law's {options.loss_column}, about which a single "
        "run scatters besides (scatter: standard deviation)"
    )
    for note in found.notes:
        print(f"note: {note}")
    weights = ",".join(decimals(list(found.weights.values())))
    data = " ".join(f"--data {pair}=FILE" for pair in found.weights)
    print(f"\nas options of train: {data} --weights {weights}")
    return 0


def decimals(weights: list[float]) -> list[str]:
    """Write weights that sum to 1 with four decimals that sum to 1: the largest takes the rest.

    >>> decimals([0.33333, 0.33334, 0.33333])
    ['0.3333', '0.3334', '0.3333']
    """
    found = [round(p, 4) for p in weights]
    largest = weights.index(max(weights))
    found[largest] = 1 - sum(found[:largest]) - sum(found[largest + 1 :])
    return [f"{p:.4f}" for p in found]
