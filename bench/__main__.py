"""Runs the benchmarks and rewrites the measured part of `bench/README.md`: `python -m bench [NAME ...] [--runs N]`."""

from __future__ import annotations

import argparse

from bench import compare, install_size, judges, regrade, resume, start_up, throughput
from bench.environments import Environments
from bench.report import rewrite_readme

BENCHMARKS = {
    "throughput": throughput.measure,
    "resume": resume.measure,
    "regrade": regrade.measure,
    "compare": compare.measure,
    "judges": judges.measure,
    "start-up": start_up.measure,
    "install-size": install_size.measure,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which to run (all): {', '.join(BENCHMARKS)}")
    parser.add_argument("--runs", type=int, default=3, help="how often each contender runs (default 3)")
    options = parser.parse_args()
    unknown = set(options.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    environments = Environments()
    for name in options.names or BENCHMARKS:
        table = BENCHMARKS[name](environments, options.runs)
        print(table.markdown(), flush=True)
        rewrite_readme(name, table)


if __name__ == "__main__":
    main()
