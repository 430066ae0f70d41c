"""Commands that serve the two papers; `mnmt_repro.__main__` adds them to `mnmt-repro`."""
