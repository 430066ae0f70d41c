"""The commands of `mnmt-repro`, one module each: `add(commands)` declares its options.

No module here imports torch before its command runs, so that `--help` is quick and the base tier
can fit laws and build the book.
"""
