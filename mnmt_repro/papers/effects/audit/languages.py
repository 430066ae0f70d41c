"""What Paper B says about its languages, counted in Tables 2 and 8 to 11."""

from __future__ import annotations

import pandas as pd

from mnmt_repro.papers.cohorts.languages25 import GROUPINGS, foreign
from mnmt_repro.papers.effects.audit.checks import check, checked, rows_of
from mnmt_repro.papers.effects.audit.tables import grouping, printed_table
from mnmt_repro.papers.effects.framed import Rows


@checked
def resource_levels() -> Rows:
    """Derive each language's resource level from its sentence pairs, by the rule of Table 9."""
    for row in rows_of(printed_table(9)):
        where = f"Table 9, {row.language}: {int(row.value):,} sentence pairs"
        yield check(where, row.level, resource_level(row.value))


def resource_level(sentence_pairs: float) -> str:
    """Name the resource level of Table 9.

    Examples
    --------
    >>> [resource_level(n) for n in (99_999, 100_000, 1_000_000, 1_000_001, 10_000_001)]
    ['very low', 'low', 'low', 'mid', 'high']
    """
    if sentence_pairs > 10_000_000:
        return "high"
    if sentence_pairs > 1_000_000:
        return "mid"
    return "low" if sentence_pairs >= 100_000 else "very low"


@checked
def language_facts() -> Rows:
    """Count what the paper says about its languages in Tables 2, 8, 9, 10 and 11."""
    by_name = {name: grouping(name) for name in GROUPINGS}
    base = by_name["Mt25"]
    added = {name: frame[frame["group"] == "added"] for name, frame in by_name.items()}
    old = {name: frame[frame["group"] == "original"] for name, frame in by_name.items()}
    low = ("low", "very low")
    below = int(old["M12t25"]["level"].isin(low).sum())
    new_scripts = len({*added["Mt25-v2"]["script"]} - {*old["Mt25-v2"]["script"]})
    hindi = "Hindi, just above the limit with 1,032,502 pairs, is among the added ones"
    yield check("§3, languages: Table 9", 25, len(base))
    yield check("§3, language families: Table 9", 10, base["family"].nunique())
    yield check("§3, resource levels: Table 9", 4, base["level"].nunique())
    yield check("§3, scripts: Table 9", 4, base["script"].nunique())
    yield check("§3, families of the added languages", 4, added["Mt25"]["family"].nunique())
    yield check("§3, scripts of the added languages", 4, added["Mt25"]["script"].nunique())
    yield check("§3, added languages above low", 0, _above(added["Mt25"]))
    yield check("§5.1, mid languages among those that v1 adds", 1, _above(added["Mt25-v1"]))
    yield check("§5.1, new scripts among those that v2 adds", 0, new_scripts)
    yield check("Table 11, original languages of M12t25 below mid", 0, below)
    above = _above(added["M12t25"])
    yield check("Table 11, added languages of M12t25 above low", 0, above, reading=hindi)
    for name in tuple(GROUPINGS)[:3]:
        kin = old[name]["family"].isin(added[name]["family"]) & old[name]["level"].isin(low)
        related, starred = set(old[name].index[kin]), set(old[name].index[old[name]["upsampled"]])
        missing = sorted(related - starred)
        yield check(
            f"§4.3, related low-resource languages of {name} without the star",
            0,
            len(missing),
            reading=f"not up-sampled, by mistake or choice: {', '.join(missing)}",
        )
        where = f"§4.3, starred languages of {name} that are not related or not low"
        yield check(where, 0, len(starred - related))
    for cell in rows_of(printed_table(8)):
        starred_here = by_name[cell.grouping].loc[foreign(cell.pair), "upsampled"]
        where = f"Table 8, {cell.grouping}, {cell.pair}: up-sampled"
        yield check(where, cell.upsampled, "yes" if starred_here else "no")


def _above(languages: pd.DataFrame) -> int:
    return int(languages["level"].isin(("high", "mid")).sum())
