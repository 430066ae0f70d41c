"""Paper A's Appendix A: the printed model sizes beside the arithmetic."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from mnmt_repro.architecture import PublishedSize, parameter_counts


def model_sizes(published: Iterable[PublishedSize]) -> pd.DataFrame:
    """One row a published size: its shape, both printed counts, ours, and the differences."""
    rows = []
    for row in published:
        shape, counts = row.config, parameter_counts(row.config)
        rows.append(
            {
                "layers": f"{shape.encoder_layers} + {shape.decoder_layers}",
                "d": shape.d_model,
                "heads": shape.heads,
                "feed-forward": shape.d_ff,
                "total, printed": row.published_total,
                "total, counted": counts["total"],
                "printed − counted": row.published_total - counts["total"],
                "N, printed": row.published_non_embedding,
                "N, counted": counts["non_embedding"],
                "printed − counted N": row.published_non_embedding - counts["non_embedding"],
            }
        )
    return pd.DataFrame(rows)
