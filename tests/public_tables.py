"""How the tables of ``data/external`` were selected from what their authors published."""

from __future__ import annotations

import pandas as pd

SLIMPAJAMA, PILE, TRANSLATION = "slimpajama", "pile", "gordon-translation"
TOKENS = {"": 20e9, "-half": 10e9}
"""Training tokens at which SlimPajama's losses are read, and the end of the cohort's name."""
_WITHIN = 0.12  # rows whose tokens are so near count as read there
_LEAST_SIZES = 5  # of a mixture
DOMAINS = ("arxiv", "book", "c4", "github", "commoncrawl", "stackexchange", "wikipedia")

PILE_DOMAINS = {
    "arxiv": ("ArXiv", "academic"),
    "books3": ("Books3", "prose"),
    "opensubtitles": ("OpenSubtitles", "dialogue"),
    "github": ("Github", "symbolic"),
    "pile-cc": ("Pile-CC", "internet"),
}
"""Our name of a domain: its test set, and the group of training text whose weight it has."""


def select_slimpajama(raw: pd.DataFrame) -> pd.DataFrame:
    """Our selection of the public SlimPajama table.

    Of each mixture and size the row nearest to each number of `TOKENS`, within 12 %; mixtures that
    have at least five sizes at all of them.

    Parameters
    ----------
    raw
        As published: ``weight_<domain>``, ``model_size``, ``n_tokens``, ``<domain>_loss``.

    Returns
    -------
    DataFrame
        ``cohort, mixture, model_size, n_tokens``, the weight and the loss of each domain; mixtures
        are numbered in the order of their weights.
    """
    weights = [f"weight_{domain}" for domain in DOMAINS]
    losses = [f"{domain}_loss" for domain in DOMAINS]
    numbered = raw.assign(mixture=raw.groupby(weights).ngroup())
    parts = []
    for end, tokens in TOKENS.items():
        away = (numbered["n_tokens"] / tokens - 1).abs()
        near = numbered.assign(away=away)[away <= _WITHIN].dropna(subset=losses)
        nearest = near.sort_values("away").groupby(["mixture", "model_size"]).head(1)
        parts.append(nearest.assign(cohort=SLIMPAJAMA + end))
    table = pd.concat(parts)
    sizes = table.groupby(["mixture", "cohort"])["model_size"].nunique().unstack()
    kept = sizes.index[(sizes >= _LEAST_SIZES).all(axis=1)]
    table = table[table["mixture"].isin(kept)]
    columns = ["cohort", "mixture", "model_size", "n_tokens", *weights, *losses]
    return table[columns].sort_values(columns[:3]).reset_index(drop=True)


def select_pile(raw: pd.DataFrame) -> pd.DataFrame:
    """Our selection of the public Pile losses: one test set for each group of training text.

    Parameters
    ----------
    raw
        A row a loss: ``model_millions, mixture, test_set, loss`` and the weight of each group.

    Returns
    -------
    DataFrame
        ``cohort, mixture, model_size``, the weight and the loss of each domain.
    """
    keys = ["mixture", "model_millions"]
    losses = raw.pivot_table(index=keys, columns="test_set", values="loss")
    table = raw.groupby(keys)[[group for _, group in PILE_DOMAINS.values()]].first()
    table.columns = [f"weight_{domain}" for domain in PILE_DOMAINS]
    for domain, (test_set, _) in PILE_DOMAINS.items():
        table[f"{domain}_loss"] = losses[test_set]
    table = table.reset_index()
    table.insert(0, "cohort", PILE)
    table.insert(2, "model_size", 1_000_000 * table.pop("model_millions"))
    return table


def select_translation(raw: pd.DataFrame) -> pd.DataFrame:
    """Of the public translation runs, each shape at all and at half of its pair's data.

    Returns
    -------
    DataFrame
        ``cohort, pair, layers, d_model, d_ff, data_bytes, parameters, loss``: `parameters` without
        tables, by the arithmetic of the shape; `loss` is cross-entropy of the development set.
    """
    rows = raw[raw["DataPercent"].isin([100, 50])]
    width, inner, layers = rows["ModelSize"], rows["FeedForward"], rows["Layers"]
    encoder, decoder = 4 * width**2 + 2 * width * inner, 8 * width**2 + 2 * width * inner
    return pd.DataFrame(
        {
            "cohort": TRANSLATION + rows["DataPercent"].map({100: "", 50: "-half"}),
            "pair": rows["Lang"].str[:2] + "-" + rows["Lang"].str[2:],
            "layers": layers,
            "d_model": width,
            "d_ff": inner,
            "data_bytes": rows["data_bytes"],
            "parameters": layers * (encoder + decoder),
            "loss": rows["ent_dev"],
        }
    ).sort_values(["cohort", "pair", "parameters"], ignore_index=True)


def select_by_size(raw: pd.DataFrame) -> pd.DataFrame:
    """Losses at each size after 20,000 steps, of mixtures that have all sizes below the largest.

    Parameters
    ----------
    raw
        A row a loss: ``model_millions, mixture, test_set, loss``.

    Returns
    -------
    DataFrame
        ``mixture, n_non_embedding``, and a column for each test set.
    """
    below = raw[raw["model_millions"] < raw["model_millions"].max()]
    sizes = below.groupby("mixture")["model_millions"].nunique()
    kept = raw[raw["mixture"].isin(sizes.index[sizes == sizes.max()])]
    keys = ["mixture", "model_millions"]
    table = kept.pivot(index=keys, columns="test_set", values="loss").reset_index()
    table.insert(1, "n_non_embedding", 1_000_000 * table.pop("model_millions"))
    return table


def select_seeds(raw: pd.DataFrame) -> pd.DataFrame:
    """Of the small translation runs, the loss of each pair, amount of data and shuffling seed."""
    return pd.DataFrame(
        {
            "pair": raw["Lang"].str[:2] + "-" + raw["Lang"].str[2:],
            "percent": raw["DataPercent"],
            "seed": raw["ShuffleSeed"],
            "data_bytes": raw["data_bytes"],
            "cross_entropy": raw["ent_dev"],
        }
    ).sort_values(["pair", "percent", "seed"], ignore_index=True)
