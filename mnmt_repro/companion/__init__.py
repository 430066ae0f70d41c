"""Commands that serve the two papers; `pyproject.toml` registers them with `mnmt-repro`."""
