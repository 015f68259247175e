"""The absolute command with which a client starts this installation of recalld.

A desktop application does not have the PATH of a shell, so an entry names a file. In a checkout
that is `scripts/recalld`, which also repairs its environment. Links are kept: the link that pipx or
uv creates stays valid after an upgrade, its target may not.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from daemon.exit_codes import UNAVAILABLE, Exit

#: Variables that select the data of the caller; an entry carries those that are set.
CARRIED: Final = ("RECALLD_HOME", "RECALLD_SOCKET")


def own_command(
    started_as: str = sys.argv[0],
    prefix: str = sys.prefix,
    variables: Mapping[str, str] = os.environ,
) -> str:
    """The file to start; `Exit` if there is none."""
    environment = Path(prefix)
    checkout = environment.parent / "scripts" / "recalld"
    if environment.name == ".venv-run" and checkout.is_file():
        return str(checkout)
    candidates = [Path(started_as).absolute(), environment / "bin" / "recalld"]
    found = shutil.which("recalld", path=variables.get("PATH"))
    candidates += [Path(found).absolute()] if found else []
    for path in candidates:
        if path.name == "recalld" and path.is_file() and os.access(path, os.X_OK):
            return str(path)
    raise Exit(
        UNAVAILABLE,
        "the recalld command is not installed beside this Python; use pipx, uv or scripts/recalld",
    )


def carried_variables(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    return {name: variables[name] for name in CARRIED if variables.get(name)}
