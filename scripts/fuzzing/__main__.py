"""`scripts/fuzz.py`: sends random and mutated frames to recalld or to any stdio server.

    scripts/fuzz.py --frames 100000 --transport stdio --transport bridge --transport unix
    scripts/fuzz.py --frames 5000 --command 'python my_server.py'
    scripts/fuzz.py --frames 5000 --transport stdio --real
    scripts/fuzz.py --frames 20000 --transport bridge --kills 0.05
    scripts/fuzz.py --replay .cache/fuzz/stdio-2025-03-26-1.frames

Exit status 0: no violation. Exit status 1: a violation; the seed is printed and the frames sent so
far are saved. The same seed sends the same frames.
"""

import argparse
import secrets
import sys
import time
from pathlib import Path

from scripts.fuzzing import corpus, run
from scripts.fuzzing.oracle import Violation
from scripts.kit.duplex import Hangup, Silence


def main() -> int:
    options = _options()
    if options.replay:
        try:
            run.replay(options.transport[0], options.replay, command=options.command)
        except (Violation, Silence, Hangup) as fault:
            print(f"FAIL  {fault}")
            return 1
        print("PASS  no violation in this replay")
        return 0
    seed = options.seed if options.seed is not None else secrets.randbelow(1_000_000)
    revisions = tuple(options.revision or corpus.REVISIONS)
    failed = False
    for transport in options.transport:
        began = time.monotonic()
        try:
            tally = run.fuzz(
                transport,
                options.frames,
                seed,
                command=options.command,
                revisions=revisions,
                kills=options.kills,
                real=options.real,
                say=run.print_line,
            )
        except run.FuzzFailure as fault:
            print(f"FAIL  {transport}: {fault}")
            failed = True
            continue
        seconds = time.monotonic() - began
        grown = ", ".join(
            f"{name} {tally.resident[name] / 1e6:.0f} MB (+{growth / 1e6:.1f})"
            for name, growth in tally.growth.items()
        )
        print(
            f"PASS  {transport}: seed {seed}, {tally.frames} frames in {seconds:.0f} s, "
            f"{tally.answers} answers, {tally.nameless} errors without an id, "
            f"{tally.notices} notifications, {tally.killed} daemons killed; {grown}"
        )
        codes = ", ".join(f"{code} ×{count}" for code, count in sorted(tally.codes.items()))
        print(f"      codes: {codes}")
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/fuzz.py", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--frames", type=int, default=10_000, help="number of frames on each transport"
    )
    parser.add_argument("--transport", action="append", choices=run.TRANSPORTS)
    parser.add_argument("--revision", action="append", choices=corpus.REVISIONS)
    parser.add_argument("--seed", type=int, help="seed of a run to repeat (default: random)")
    parser.add_argument("--command", help="a stdio server to fuzz instead of recalld")
    parser.add_argument(
        "--kills",
        type=float,
        default=0.0,
        metavar="CHANCE",
        help="bridge only: probability of kill -9 of the daemon after each burst",
    )
    parser.add_argument(
        "--real", action="store_true", help="call the shipped tools instead of fixtures"
    )
    parser.add_argument("--replay", type=Path, metavar="FILE", help="send saved frames again")
    options = parser.parse_args()
    if options.kills and options.transport != ["bridge"]:
        parser.error("--kills needs --transport bridge")
    options.transport = options.transport or (
        ["stdio"] if options.command or options.replay else list(run.TRANSPORTS)
    )
    return options


if __name__ == "__main__":
    sys.exit(main())
