"""`recommend`: which mixture to train at a model size, from a table of losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mnmt_repro.cli.fit import Asked, by_pair, fit_table, notes_on_rows, of_pair
from mnmt_repro.cli.losses_table import TableOptions, read_losses
from mnmt_repro.cli.options import JsonOption, comma_list, named_numbers, print_json
from mnmt_repro.errors import InputError, note, show, tell
from mnmt_repro.typed_config import required, setting


@dataclass(frozen=True, kw_only=True)
class RecommendOptions(JsonOption, TableOptions):
    """The options of `recommend`."""

    n: float = required("model size, in the unit of the column", required=True, metavar="N")
    prefer: tuple[str, ...] = setting(
        "how much each pair counts in the mean loss (default: all alike)", (), metavar="PAIR=W,..."
    )
    law: Literal["eq12", "eq13"] = setting("equation of the effective fraction", "eq12")
    force: bool = setting("print weights that the runs do not support", False)


EXAMPLES = (
    "mnmt-repro recommend losses.csv --n 2e5 --prefer eng-deu=2,eng-zho=1",
    "mnmt-repro recommend losses.csv --n 2e5 --json",
    "mnmt-repro recommend losses.csv --n 2e5 --mixture-column run_id",
)


def act(options: RecommendOptions) -> int:
    """Print the recommended weights with the losses they should give; 1 where they are refused."""
    from mnmt_repro.laws.recommendation import recommend_weights
    from mnmt_repro.laws.uncertainty import LEVEL

    frame = read_losses(options, needed=("p", "pair"))
    note(*notes_on_rows(frame, options))
    pairs = by_pair(frame)
    if len(pairs) < 2:
        raise InputError(
            f"{options.file}: rows of {', '.join(pairs)} alone; a trade-off needs two pairs or more"
        )
    wishes = [wish for text in options.prefer for wish in comma_list(text)]
    importance = named_numbers(wishes, "--prefer") if options.prefer else None
    asked: Asked = "auto" if options.mixture_column else options.law
    laws = {pair: law for pair, (_, law) in fit_table(frame, options, asked).items()}
    with of_pair():
        best = recommend_weights(laws, options.n, importance)
    note(*best.refusal)
    if best.refusal and not options.force:
        tell("no recommendation; add the runs that the notes name. --force prints the weights")
        return 1
    law = next(iter(laws.values()))
    if options.json:
        names = {"p": "weights", "p_low": "weights_low", "p_high": "weights_high"}
        by_column = best.table.rename(columns=names).to_dict()
        about = {"notes": best.notes, "refusal": best.refusal, "interval_method": law.resampling}
        print_json({"n": best.n} | by_column | about)
        return 0
    method, measure = law.method_in_words(law.resampling), options.names()["loss"]
    shown = best.table.reset_index().rename(columns={"loss": measure})
    show(shown.to_string(index=False, float_format=lambda x: f"{x:.4f}"))
    print(
        f"p_low, p_high: {LEVEL:.0%} interval of the weights\n"
        f"low, high: {LEVEL:.0%} interval of the law's {measure}, not of a single run\n"
        f"both intervals: {method}\n"
        "regret: how much worse than the pair alone at this size"
    )
    for each in best.notes:
        show(f"note: {each}")
    weights = ",".join(f"{pair}={p:.4f}" for pair, p in best.table["p"].items())
    data = " ".join(f"--data {pair}=FILE" for pair in best.table.index)
    show(f"\nas options of train: {data} --weights {weights}")
    return 0
