"""Parameter counts: Paper A's Appendix A against its shapes, and Paper B's three shapes."""

from __future__ import annotations

import pandas as pd

from mnmt_repro.architecture import PAPER_A, ModelConfig, parameter_counts
from mnmt_repro.papers.effects.audit.checks import check, checked
from mnmt_repro.papers.effects.framed import Rows


@checked
def parameters_paper_a() -> Rows:
    """Compare both counts of each size of Paper A's Appendix A with those of its shape."""
    for size in PAPER_A:
        shape, counts = size.config, parameter_counts(size.config)
        name = f"{shape.encoder_layers} + {shape.decoder_layers} layers, d {shape.d_model}"
        printed = {
            "total": size.published_total,
            "non_embedding": size.published_non_embedding,
        }
        for kind, value in printed.items():
            excess = (value - counts[kind]) // shape.d_model
            yield check(
                f"Paper A, Appendix A, {name}: {kind.replace('_', ' ')}",
                value,
                counts[kind],
                reading=(
                    f"{excess} more rows in the two embedding tables together, "
                    f"{shape.vocab_size + excess // 2:,} pieces in place of "
                    f"{shape.vocab_size:,}, would explain it"
                ),
            )


def shapes_paper_b(pieces: int = 64_000) -> pd.DataFrame:
    """Count the parameters of Paper B's three shapes; the paper prints shapes and hours only.

    Parameters
    ----------
    pieces
        Rows of the embedding table, which input and output share. The paper says 64K.

    Returns
    -------
    DataFrame
        Per model: layers, feed-forward width, parameters with and without embeddings, the printed
        hours of 100k updates on 64 GPUs, and both relative to the baseline.
    """
    shapes = {"M25": (12, 4096, 24.0), "M25-wide": (12, 8192, 29.9), "M25-deep": (18, 4096, 29.0)}
    rows = []
    for model, (layers, d_ff, hours) in shapes.items():
        counts = parameter_counts(
            ModelConfig.fairseq(vocab_size=pieces, d_model=1024, layers=layers, heads=16, d_ff=d_ff)
        )
        rows.append(
            {
                "model": model,
                "layers": f"{layers} + {layers}",
                "feed-forward": d_ff,
                "parameters": counts["total"],
                "without embeddings": counts["non_embedding"],
                "hours, printed": hours,
            }
        )
    frame = pd.DataFrame(rows)
    frame["parameters, relative"] = frame["parameters"] / frame["parameters"].iloc[0]
    frame["hours, relative"] = frame["hours, printed"] / frame["hours, printed"].iloc[0]
    return frame
