"""Public losses of larger runs, as rows beside our own, and their laws.

The tables lie in ``data/external/``; ``data/external/README.md`` says where they come from. They
are no runs of ours: they have no commit, and every rule that reads them is post hoc. A law has one
exponent per domain and one multiplier per mixture.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from mnmt_repro.corpora.fetch import download
from mnmt_repro.laws import JointLawFit, fit_joint_law
from mnmt_repro.papers.effects.cells import Rows, framed

EXTERNAL = "external"
"""The tier of these rows."""

ORIGIN_URL = "https://raw.githubusercontent.com/"
"""Where the repositories of the originals can be read, file by file and by commit."""


@dataclass(frozen=True, kw_only=True)
class Original:
    """A table as its authors published it."""

    repository: str
    commit: str
    path: str
    sha256: str

    @property
    def name(self) -> str:
        """Of the file, without its folders."""
        return self.path.rpartition("/")[2]


ORIGINALS = (
    Original(
        repository="meiqwq/Explaining-Data-Mixing-Scaling-Laws",
        commit="c2bf1106e8e54b8d368cd6de2515d4804f1c8a36",
        path="data/dmsl_llm_slimpajama.csv",
        sha256="9c950a9f96e058318cfcefde5835143525937186163f4c2345b030ef0ea0519f",
    ),
    Original(
        repository="mitchellgordon95/mt-scaling",
        commit="cb9600d7db86843ffec71c8f1d90e759b17cf9d8",
        path="summaries/data_scaling.0126.summary",
        sha256="94d3eeee25bce65ab28078c1eb97286e62cbe1682f9b4e6717758a0d7eec0de6",
    ),
    Original(
        repository="mitchellgordon95/mt-scaling",
        commit="cb9600d7db86843ffec71c8f1d90e759b17cf9d8",
        path="summaries/low_resource.0126.summary",
        sha256="bcedffcb2a75ab88521f84842da5789287e33f71bf50d10b3533b7577521b733",
    ),
    Original(
        repository="pkunlp-icler/ParetoMNMT",
        commit="3ddfd21c17000c3334d8b652ba66dda2515b3e08",
        path="scripts/3d-vis.ipynb",
        sha256="7d74669558b44f32fec27fb5cedc99480bfd8deb861e0b0b6ac0a941774220f8",
    ),
    *(
        Original(
            repository="yegcjs/mixinglaws",
            commit="8ad3e1244b53294ded55a96ae325f4112ce3bc63",
            path=f"data/{name}.txt",
            sha256=sha256,
        )
        for name, sha256 in (
            ("5Mix/70M", "e2291932bc49162c4d57f42b953d9d44c9e7bc2a8617ee051f99c12b89b3c26c"),
            ("5Mix/160M", "2cfa8f7ee450ac4b1e2e9e605b9fa90372f856fbdb759cc5bcde6a552e843964"),
            ("5Mix/305M", "0b3ede771115a7516eed7f6735f4be22cb762ca04f7bfc42699f915da8e3e0ed"),
            ("5Mix/410M", "10d88c6b3149f9bf57a61b9453c7604796451c6c3058897fbbf91a5cee273f37"),
            ("5Mix/1B", "84e5ba29f78359aebed51da474d844cfed84d053fc30469b3d12ce72528f550c"),
            ("RedPajama/70M", "4a3e3afec60dadfbf77b23e09d89653e9abdfa0c1db35c83fe073e039f142991"),
            ("RedPajama/160M", "4bd1696e96ef86f8f4114c3b4920f99395ffc9cfe7455d7fd9b080e09f7643d0"),
            ("RedPajama/305M", "fa0c89c569e9bda7eebb30d057895d8cdc7158064c8759b32152ed1f0fe105b7"),
            ("RedPajama/410M", "9c117fbed349ebc0971dba63322aa01a2ab88edfd34fdeb642befed0d4ee8f33"),
            ("RedPajama/1B", "6187ca3191e79f1a87bdd6edca58b76d2a316225e6e06dfb64b1672220d51542"),
        )
    ),
)
"""What the tables of ``data/external`` were selected from; a test makes the selection again."""


def fetch_original(original: Original, folder: Path, *, base_url: str = ORIGIN_URL) -> Path:
    """Download an original below `folder`, by commit and SHA-256, where it is not there yet.

    It has the path that it has in its repository, since some have the same name.

    Raises
    ------
    InputError
        As `corpora.fetch.download`.
    """
    where = f"{base_url}{original.repository}/{original.commit}/"
    parent = original.path.rpartition("/")[0]
    return download(f"{where}{parent}/", original.name, original.sha256, folder / parent)


def load_external(folder: Path) -> pd.DataFrame:
    """The tables of ``data/external``, with those columns of `results.load` that claims read.

    A domain stands for a pair, where its weight is above 0; `mixture` names what it was trained
    with. Empty where there are no tables.
    """
    if not folder.is_dir():
        return pd.DataFrame()
    parts = [
        pd.DataFrame(
            {
                "cohort": wide["cohort"],
                "pair": domain,
                "mixture": wide["mixture"].map("mixture {}".format),
                "p": wide[f"weight_{domain}"],
                "n_non_embedding": wide["model_size"],
                "cross_entropy": wide[f"{domain}_loss"],
            }
        )
        for name in ("slimpajama.csv", "pile.csv")
        for wide in [pd.read_csv(folder / name)]
        for domain in wide.filter(regex="_loss$").columns.str.removesuffix("_loss")
    ]
    translation = pd.read_csv(folder / "translation.csv").rename(
        columns={"parameters": "n_non_embedding", "loss": "cross_entropy"}
    )
    parts.append(translation.assign(mixture="alone", p=1.0))
    frame = pd.concat(parts, ignore_index=True, join="inner")
    frame = frame.query("p > 0").reset_index(drop=True)
    cells = zip(frame["cohort"], frame["mixture"], frame["n_non_embedding"], strict=True)
    return frame.assign(
        run_id=[f"{cohort} {mixture} {n}" for cohort, mixture, n in cells],
        commit="",
        tier=EXTERNAL,
        test_set="indomain",
        domain="all",
        n_total=frame["n_non_embedding"],
        seed=1,
        variant="",
    )


_CURVE_POINTS = 12
_PARTNERS = {"fra": "deu", "deu": "fra", "zho": "fra"}


def domain_laws(rows: pd.DataFrame) -> dict[str, JointLawFit]:
    """Fit Eq. 7 to each domain, with a multiplier for each mixture.

    Parameters
    ----------
    rows : DataFrame
        Of one cohort of `load_external`.
    """
    return {str(name): fit_joint_law(part, by="mixture") for name, part in rows.groupby("pair")}


@framed()
def laws_by_domain(laws: Mapping[str, JointLawFit]) -> Rows:
    """Coefficients of each domain's law: ``domain, alpha, L_inf, R², mixtures, losses``."""
    for name, law in laws.items():
        yield {
            "domain": name,
            "alpha": law.alpha,
            "L_inf": law.l_inf,
            "R²": law.r2,
            "mixtures": len(law.law.keys),
            "losses": law.observations,
        }


@framed()
def law_curves(rows: pd.DataFrame, laws: Mapping[str, JointLawFit]) -> Rows:
    """Laws over all sizes: ``domain, p, n, loss``, the mean over mixtures of one weight."""
    for name, part in rows.groupby("pair"):
        sizes = part["n_non_embedding"]
        n = np.geomspace(sizes.min(), sizes.max(), _CURVE_POINTS)
        for p, own in part.groupby(part["p"].round(3)):
            losses = [
                laws[str(name)].predict([mixture] * len(n), n) for mixture in set(own["mixture"])
            ]
            yield pd.DataFrame({"domain": name, "p": p, "n": n, "loss": np.mean(losses, axis=0)})


@framed()
def relative_fractions(rows: pd.DataFrame, laws: Mapping[str, JointLawFit]) -> Rows:
    """Effective parameters of a domain in each mixture, relative to its highest weight.

    By Eq. 10 the ratio of two effective fractions is (beta / beta_0) ** (-1 / alpha). Only such
    ratios can be read without models of one domain alone. Where several mixtures have the highest
    weight, the reference is their geometric mean.

    Returns
    -------
    DataFrame
        ``domain, mixture, p, weight_ratio, fraction_ratio``; a neutral domain has two equal ratios.
    """
    for name, law in laws.items():
        p = rows[rows["pair"] == name].groupby("mixture")["p"].first().reindex(list(law.law.keys))
        log_beta = np.log(list(law.beta.values()))
        highest = log_beta[np.isclose(p, p.max())].mean()
        yield pd.DataFrame(
            {
                "domain": name,
                "mixture": law.law.keys,
                "p": p.to_numpy(),
                "weight_ratio": (p / p.max()).to_numpy(),
                "fraction_ratio": np.exp(-(log_beta - highest) / law.alpha),
            }
        )


def lowest_weights(fractions: pd.DataFrame) -> pd.DataFrame:
    """Of each domain the mean over the mixtures of its lowest weight, and their ratio.

    Returns
    -------
    DataFrame
        ``domain, weight_ratio, fraction_ratio, gain``: `gain` is the second over the first, 1 where
        a domain gets the share of its weight.
    """
    lowest = fractions[fractions["p"] == fractions.groupby("domain")["p"].transform("min")]
    means = lowest.groupby("domain")[["weight_ratio", "fraction_ratio"]]
    ratios = means.agg(stats.gmean)
    table = ratios.assign(gain=ratios["fraction_ratio"] / ratios["weight_ratio"])
    return table.sort_values("gain").reset_index()


@framed()
def forecasts(rows: pd.DataFrame, size: float) -> Rows:
    """Losses at one size, forecast from the smaller sizes of the same mixtures.

    The law is Eq. 7 with a multiplier for each mixture, and its relative squared errors are least.
    It is fitted to all mixtures of a test set, also to those without the size to forecast.

    Parameters
    ----------
    rows
        ``pair, mixture, n_non_embedding, cross_entropy`` of one corpus; a test set is a pair.

    Returns
    -------
    DataFrame
        ``pair, mixture, loss, law, naive``: the loss at the size, and two forecasts of it. The
        naive one is the loss of the largest smaller size.
    """
    for pair, part in rows.groupby("pair"):
        smaller = part[part["n_non_embedding"] < size].sort_values("n_non_embedding")
        naive = smaller.groupby("mixture")["cross_entropy"].last()
        wanted = part[(part["n_non_embedding"] == size) & part["mixture"].isin(naive.index)]
        law = fit_joint_law(smaller, by="mixture", errors="relative")
        mixtures = wanted["mixture"].to_numpy()
        yield pd.DataFrame(
            {
                "pair": pair,
                "mixture": mixtures,
                "loss": wanted["cross_entropy"].to_numpy(),
                "law": law.predict(mixtures, size),
                "naive": naive[mixtures].to_numpy(),
            }
        )


def forecast_errors(table: pd.DataFrame) -> pd.DataFrame:
    """Root mean square relative error of both `forecasts` over mixtures: ``pair, law, naive``."""
    errors = table[["law", "naive"]].div(table["loss"], axis=0) - 1
    return ((errors**2).groupby(table["pair"]).mean() ** 0.5).reset_index()


@framed()
def by_own_weight(table: pd.DataFrame) -> Rows:
    """Losses of each language where its weight is known: ``language, p, partner, company, loss``.

    Parameters
    ----------
    table
        ``data/external/translation_mixtures.csv``.

    Returns
    -------
    DataFrame
        `company` is the weight of one other language, `partner`: German for French, and French for
        German and Chinese. It is missing where the table does not have it.
    """
    for own, partner in _PARTNERS.items():
        yield pd.DataFrame(
            {
                "language": own,
                "p": table[f"weight_{own}"],
                "partner": partner,
                "company": table[f"weight_{partner}"],
                "loss": table[f"loss_{own}"],
            }
        ).dropna(subset="p")
