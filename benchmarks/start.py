"""How long `mnmt-repro --help` takes, beside `python -c "import pandas"`.

Both are started turn by turn in new processes, and their best times are compared. The ratio is ours
over that of pandas; below 1, ours is faster.

    python benchmarks/start.py [--repeats 20]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

COMMANDS = {
    "mnmt-repro --help": ("-m", "mnmt_repro.cli", "--help"),
    "import pandas": ("-c", "import pandas"),
}


def seconds(arguments: tuple[str, ...]) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    repeats = range(parser.parse_args().repeats)
    turns = [{name: seconds(command) for name, command in COMMANDS.items()} for _ in repeats]
    ours, theirs = (min(turn[name] for turn in turns) for name in COMMANDS)
    for name, best in zip(COMMANDS, (ours, theirs), strict=True):
        print(f"{name}: {best:.3f} s")
    print(f"ratio: {ours / theirs:.2f}")


if __name__ == "__main__":
    main()
