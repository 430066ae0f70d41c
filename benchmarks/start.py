"""How long `mnmt-repro --help` takes, beside `python -c "import pandas"`, and loading all results.

The two commands are started turn by turn in new processes, and their best times are compared. The
ratio is that of pandas over ours; above 1, ours is faster. Results are loaded in this process.

    python benchmarks/start.py [--repeats 20] [--out data/benchmarks/start.json]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
from stored import keep

from mnmt_repro import results

COMMANDS = {
    "mnmt-repro --help": ("-m", "mnmt_repro", "--help"),
    "import pandas": ("-c", "import pandas"),
}


def seconds(arguments: tuple[str, ...]) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    repeats = range(options.repeats)
    turns = [{name: seconds(command) for name, command in COMMANDS.items()} for _ in repeats]
    best = {name: min(turn[name] for turn in turns) for name in COMMANDS}
    ours, theirs = best.values()
    rows = [{"work": name, "s": best[name]} for name in COMMANDS]
    loads = []
    for _ in repeats:
        began = time.perf_counter()
        count = len(results.load())
        loads.append(time.perf_counter() - began)
    rows.append({"work": f"loading {count:,} results", "s": min(loads)})
    for row in rows:
        print(f"{row['work']}: {row['s']:.3f} s")
    print(f"import pandas over help: {theirs / ours:.2f}")
    if options.out:
        keep(options.out, pd.DataFrame(rows), ratio=theirs / ours)


if __name__ == "__main__":
    main()
