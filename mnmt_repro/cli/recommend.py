"""`recommend`: which mixture to train at a model size, from a table of losses."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mnmt_repro.cli.fit import (
    FitOptions,
    by_pair,
    fit_table,
    notes_on_rows,
    of_pair,
    read_losses,
    strange_rows,
)
from mnmt_repro.cli.losses_table import TableOptions
from mnmt_repro.cli.options import (
    JsonOption,
    check_absent,
    comma_list,
    named_numbers,
    print_json,
    write_table,
)
from mnmt_repro.errors import InputError, note, show, tell
from mnmt_repro.typed_config import required, setting

if TYPE_CHECKING:
    from mnmt_repro.laws.recommendation import Preference


@dataclass(frozen=True, kw_only=True)
class RecommendOptions(JsonOption, TableOptions):
    """The options of `recommend`."""

    n: float = required("model size, in the unit of the column", required=True, metavar="N")
    prefer: tuple[str, ...] | None = setting(
        "minimise the mean loss with these weights of the pairs", metavar="PAIR=W,..."
    )
    floor: tuple[str, ...] | None = setting(
        "keep the loss of PAIR at most at LOSS, and minimise the others", metavar="PAIR=LOSS"
    )
    equal_regret: bool = setting(
        "give every pair the same distance to the loss of the pair alone", False
    )
    form: Literal["eq12", "eq13"] = setting("shape of the effective fraction", "eq12")
    frontier: Path | None = setting(
        "also write the predicted loss of every mixture and pair", metavar="OUT.csv"
    )
    force: bool = setting("print weights that the runs do not support", False)


EXAMPLES = (
    "mnmt-repro recommend losses.csv --n 2e5 --prefer eng-deu=2,eng-zho=1",
    "mnmt-repro recommend losses.csv --n 2e5 --floor eng-deu=3.1",
    "mnmt-repro recommend losses.csv --n 2e5 --equal-regret --json",
    "mnmt-repro recommend losses.csv --n 2e5 --equal-regret --frontier frontier.csv",
    "mnmt-repro recommend losses.csv --n 2e5 --equal-regret --mixture-column run_id",
)


def _preference(options: RecommendOptions) -> Preference:
    from mnmt_repro.laws.recommendation import EqualRegret, Floor, Importance

    if options.prefer is not None:
        wishes = [wish for text in options.prefer for wish in comma_list(text)]
        return Importance(by_pair=named_numbers(wishes, "--prefer"))
    if options.floor is not None:
        if len(options.floor) > 1:
            raise InputError(f"--floor: {' and '.join(options.floor)}; one pair can have a floor")
        ((pair, target),) = named_numbers(options.floor, "--floor").items()
        return Floor(pair=pair, target=target)
    return EqualRegret()


def act(options: RecommendOptions) -> int:
    """Print the recommended weights with the losses they should give; 1 where they are refused."""
    from mnmt_repro.laws.frontier import frontier
    from mnmt_repro.laws.recommendation import recommend_weights
    from mnmt_repro.laws.uncertainty import LEVEL

    if sum(map(bool, (options.prefer, options.floor, options.equal_regret))) != 1:
        raise InputError("give one of --prefer, --floor and --equal-regret")
    check_absent(options.frontier, "--frontier")
    frame = read_losses(options, needed=("p", "pair"))
    note(*notes_on_rows(frame, options))
    pairs = by_pair(frame)
    if len(pairs) < 2:
        raise InputError(
            f"{options.file}: rows of {', '.join(pairs)} alone; a trade-off needs two pairs or more"
        )
    preference = _preference(options)
    table = {each.name: getattr(options, each.name) for each in fields(TableOptions)}
    if options.mixture_column and options.frontier:
        raise InputError("--frontier: needs a law without --mixture-column; leave out one")
    how = FitOptions(**table, law="auto" if options.mixture_column else options.form)
    fits = fit_table(frame, how)
    laws = {pair: law for pair, (*_, law) in fits.items()}
    # By two laws, as a gross row can bend either of them to itself; each row is named once.
    others = {} if how.law == "auto" else fit_table(frame, replace(how, law="auto"))
    named = {
        each.partition(" is ")[0]: f"{pair}: {each}"
        for pair, (_, fitter, fit) in (*others.items(), *fits.items())
        for each in strange_rows(pairs[pair], fitter, fit, how)[0]
    }
    strange = list(named.values())
    note(*strange)
    with of_pair():
        best = recommend_weights(laws, options.n, preference)
    note(*best.refusal)
    if best.refusal and not options.force:
        tell("no recommendation; add the runs that the notes name. --force prints the weights")
        return 1
    if options.frontier:
        curve = frontier(laws, options.n, draws=500).rename(columns={"loss": options.loss_column})
        write_table(options.frontier, "--frontier", curve)
    law = next(iter(laws.values()))
    if options.json:
        names = {"p": "weights", "p_low": "weights_low", "p_high": "weights_high"}
        by_column = best.table.rename(columns=names).to_dict()
        about = {"notes": best.notes, "refusal": best.refusal, "interval_method": law.resampling}
        print_json({"n": best.n} | by_column | about | {"outliers": strange})
        return 0
    method = law.method_in_words(law.resampling)
    shown = best.table.reset_index().rename(columns={"loss": options.loss_column})
    show(shown.to_string(index=False, float_format=lambda x: f"{x:.4f}"))
    print(
        f"p_low, p_high: {LEVEL:.0%} interval of the weights\n"
        f"low, high: {LEVEL:.0%} interval of the law's {options.loss_column}, not of a single run\n"
        f"both intervals: {method}\n"
        "regret: how much worse than the pair alone at this size"
    )
    for each in best.notes:
        show(f"note: {each}")
    weights = ",".join(f"{pair}={p:.4f}" for pair, p in best.table["p"].items())
    data = " ".join(f"--data {pair}=FILE" for pair in best.table.index)
    show(f"\nas options of train: {data} --weights {weights}")
    return 0
