"""Compares this checkout with another one, side by side in one run: wire, HTTP and engine.

    scripts/bench.py compare OTHER                  all three, 5 rounds
    scripts/bench.py compare OTHER wire http        only these
    scripts/bench.py compare OTHER --rounds 9       more rounds on a noisy machine
    scripts/bench.py compare OTHER --check          exit 1 when this checkout is over 5 % slower

OTHER is the path of a checkout with its development environment (`scripts/install`). The two take
turns in every round, so that other load on the machine affects both alike. The ratio is computed
in each round; the report shows the median ratio and the medians of the figures. A ratio above 1
means that this checkout is better.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from scripts.benches import http, wire
from scripts.kit.recalld import fresh_home

ROOT: Final = Path(__file__).resolve().parents[2]
ENGINE_PROGRAM: Final = Path(__file__).with_name("compare_engine.py")
TOLERANCE: Final = 0.95

#: The figures of one turn by name. Times are in seconds; names that end in "/s" are rates.
Figures = Mapping[str, float]


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench.py compare", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("other", type=Path, metavar="OTHER", help="the other checkout")
    parser.add_argument("parts", nargs="*", metavar="PART", help="wire, http, engine (all)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true", help="exit 1 when over 5 %% slower")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"unknown part: {', '.join(sorted(unknown))}")
    checkouts = (ROOT, options.other.resolve())
    # scripts/bench.py sets it to this checkout, and the other one's programs must not import that.
    os.environ.pop("PYTHONPATH", None)
    for checkout in checkouts:
        require_own_code(checkout)
    slower: list[str] = []
    for part in options.parts or PARTS:
        rounds = [
            tuple(PARTS[part](checkout) for checkout in order(checkouts, number))
            for number in range(options.rounds)
        ]
        slower += report(part, [restore(pair, number) for number, pair in enumerate(rounds)])
    return 1 if options.check and slower else 0


def require_own_code(checkout: Path) -> None:
    """Exit unless the environment of a checkout imports the code of that checkout."""
    program = "import daemon, pathlib; print(pathlib.Path(daemon.__file__).parents[1])"
    done = subprocess.run(
        [str(checkout / ".venv" / "bin" / "python"), "-P", "-c", program],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.stdout.strip() != str(checkout):
        found = done.stdout.strip() or done.stderr.strip()
        raise SystemExit(f"compare: {checkout} does not run its own code: {found}")


def order(checkouts: tuple[Path, Path], number: int) -> tuple[Path, Path]:
    """The two checkouts; the one that goes first alternates from round to round."""
    return checkouts if number % 2 == 0 else (checkouts[1], checkouts[0])


def restore(pair: tuple[Figures, ...], number: int) -> tuple[Figures, Figures]:
    """The figures of this checkout first, whichever went first."""
    first, second = pair
    return (first, second) if number % 2 == 0 else (second, first)


def measure_wire(checkout: Path) -> Figures:
    command = str(checkout / ".venv" / "bin" / "recalld")
    with fresh_home(command=command) as home:
        home.serve()
        turns = {
            name: wire.take_turn(
                wire.Contender(name, home.stdio(embedded=embedded), home.env), QUICK
            )
            for name, embedded in ((wire.EMBEDDED, True), (wire.BRIDGED, False))
        }
    found: dict[str, float] = {}
    for name, turn in turns.items():
        assert turn.p50 is not None
        assert turn.per_second is not None
        found[f"{name}: pipelined/s"] = turn.per_second
        found[f"{name}: sequential p50"] = turn.p50
        found[f"{name}: first call"] = turn.first_call
    return found


def measure_http(checkout: Path) -> Figures:
    recalld = str(checkout / ".venv" / "bin" / "recalld")

    def command(port: int, _home: str) -> list[str]:
        return [recalld, "serve", "--fixtures", "--bind", f"127.0.0.1:{port}"]

    found: dict[str, float] = {}
    for revision, modern in (("2026-07-28", True), ("2025-11-25", False)):
        with http.served(command) as (port, pid):
            turn = http.turn(port, pid, 1.0, modern=modern)
        found[f"{revision}: p50"] = turn.p50
        found[f"{revision}: 32 connections/s"] = turn.per_second
        found[f"{revision}: processor time per call"] = turn.cpu
    return found


def measure_engine(checkout: Path) -> Figures:
    """Run the same small program with the other checkout's modules and environment."""
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    done = subprocess.run(
        [str(checkout / ".venv" / "bin" / "python"), "-P", str(ENGINE_PROGRAM)],
        env=environment,
        cwd=checkout,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"compare: the engine of {checkout.name} failed:\n{done.stderr}")
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


QUICK: Final = wire.Effort(rounds=1, starts=3, seconds=0.8)
PARTS: Final[Mapping[str, Callable[[Path], Figures]]] = {
    "wire": measure_wire,
    "http": measure_http,
    "engine": measure_engine,
}


def report(part: str, rounds: list[tuple[Figures, Figures]]) -> list[str]:
    """Print a table; return the figures that are worse than the tolerance allows."""
    print(f"\n{part:48} {'this':>14} {'other':>14} {'ratio':>7}")
    slower: list[str] = []
    for name, this, other, ratio in compared(rounds):
        mark = "" if ratio >= TOLERANCE else "  slower"
        if mark:
            slower.append(name)
        print(f"{name:48} {shown(name, this):>14} {shown(name, other):>14} {ratio:7.2f}{mark}")
    return slower


def compared(
    rounds: list[tuple[Figures, Figures]],
) -> Iterator[tuple[str, float, float, float]]:
    for name in rounds[0][0]:
        this = [mine[name] for mine, _ in rounds]
        other = [theirs[name] for _, theirs in rounds]
        ratios = [
            mine / theirs if name.endswith("/s") else theirs / mine
            for mine, theirs in zip(this, other, strict=True)
        ]
        yield (
            name,
            statistics.median(this),
            statistics.median(other),
            statistics.median(ratios),
        )


def shown(name: str, value: float) -> str:
    if name.endswith("/s"):
        return f"{value:,.0f} /s"
    return f"{value * 1e3:,.2f} ms" if value >= 1e-3 else f"{value * 1e6:,.0f} µs"


if __name__ == "__main__":
    sys.exit(main())
