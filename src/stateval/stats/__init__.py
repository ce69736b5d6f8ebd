"""Numbers about many observations: a compact table of them, means and percentiles, and the ledger. No I/O."""
