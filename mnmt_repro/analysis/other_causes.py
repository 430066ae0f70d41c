"""Other suspects than too little training: tables that N leaves out, and the mix of domains."""

from __future__ import annotations

import pandas as pd

from mnmt_repro.analysis.budget import laws_by_budget
from mnmt_repro.analysis.framed import Rows, framed
from mnmt_repro.analysis.scaling import observed
from mnmt_repro.cohorts.names import pair_name
from mnmt_repro.laws import fit_joint_law

AS_IT_IS = "as above"
ALL_PARAMETERS = "N with the tables"


def common_domain(rows: pd.DataFrame) -> str:
    """The domain that is largest where it is smallest, over the pairs of the rows.

    Raises
    ------
    ValueError
        When no domain has text of all pairs.
    """
    parts = rows[(rows["domain"] != "all") & (rows["test_set"] == "indomain")]
    tokens = parts.pivot_table(index="domain", columns="pair", values="test_tokens", aggfunc="max")
    return str(tokens.dropna().min(axis=1).idxmax())


@framed(by=["pair"])
def compared(rows: pd.DataFrame) -> Rows:
    """The laws of a grid as they are, with the tables counted in N, and of one domain alone.

    Parameters
    ----------
    rows
        From `results.load`, of one grid, all its domains.

    Returns
    -------
    DataFrame
        A row a pair and setting: ``pair, fitted to``; ``α alone`` and ``α, least weight``, of the
        single pair's own law (Eq. 6) and of the smallest weight's, and the ``spread of α``, largest
        less smallest; at how many weights ``L∞ at bound`` is; ``slope of log f`` on log N, the mean
        of what the direct estimator gives over the weights that have one in every setting, and how
        many these ``weights`` are; ``R²`` of the joint law (Eq. 7); ``test tokens`` of the pair.
    """
    domain = common_domain(rows)
    own = rows[rows["test_set"] == "indomain"]
    whole = own[own["domain"] == "all"]
    settings = {
        AS_IT_IS: observed(whole),
        ALL_PARAMETERS: observed(whole, "n_total"),
        f"{domain} alone": observed(own[own["domain"] == domain]),
    }
    tokens = own.groupby(["domain", "pair"])["test_tokens"].max()
    read = dict.fromkeys(settings, "all") | {f"{domain} alone": domain}
    laws = {name: laws_by_budget(points.assign(budget=0)) for name, points in settings.items()}
    sloped = pd.concat([each.dropna(subset=["slope"]) for each in laws.values()])
    times = sloped.groupby(["pair", "p"]).size()
    in_all = set(times[times == len(laws)].index)
    for name, points in settings.items():
        for pair, group in laws[name].groupby("pair"):
            common = pd.Series([(pair, p) in in_all for p in group["p"]], index=group.index)
            mine = points[points["pair"] == pair]
            alpha = group.set_index("p")["alpha"]
            yield {
                "pair": pair_name(str(pair)),
                "fitted to": name,
                "α alone": alpha[1.0],
                "α, least weight": alpha[alpha.index.min()],
                "spread of α": alpha.max() - alpha.min(),
                "L∞ at bound": f"{int(group['at_bound'].sum())} of {len(group)}",
                "slope of log f": group.loc[common, "slope"].mean(),
                "weights": int(common.sum()),
                "test tokens": int(tokens[read[name], pair]),
                "R²": fit_joint_law(mine, n="n", loss="loss").r2,
            }
