"""Check the OpenAPI document with other programs, in pinned versions.

    scripts/openapi/check.py [DIRECTORY]

Lints it with Redocly CLI, generates a TypeScript client with openapi-typescript and a Python client
with openapi-python-client, compiles both, and checks that they contain every operation. It needs
npm and takes about a minute; the programs are installed into DIRECTORY (a temporary one by
default), which a later run can use again.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from scripts.openapi.document import openapi

NPM = ("@redocly/cli@2.73.0", "openapi-typescript@7.13.0", "typescript@5.9.3")
PYTHON = ("openapi-python-client==0.29.1", "ruff")
ENVIRONMENT = {**os.environ, "REDOCLY_TELEMETRY": "off"}


def run(*command: str | Path, cwd: Path) -> str:
    """The output of a program that must succeed."""
    path = f"{cwd / 'python' / 'bin'}:{os.environ.get('PATH', '')}"
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**ENVIRONMENT, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    output = done.stdout + done.stderr
    if done.returncode:
        raise SystemExit(f"{command[0]} failed:\n{output}")
    return output


def install(directory: Path) -> None:
    if not (directory / "node_modules").is_dir():
        run("npm", "install", "--no-audit", "--no-fund", "--prefix", ".", *NPM, cwd=directory)
    if not (directory / "python").is_dir():
        venv.create(directory / "python", with_pip=True)
        run(directory / "python/bin/pip", "install", "--quiet", *PYTHON, cwd=directory)


def operation_ids(document: dict[str, Any]) -> set[str]:
    return {
        operation["operationId"]
        for path in document["paths"].values()
        for operation in path.values()
    }


def lint(directory: Path) -> None:
    output = run(
        "node_modules/.bin/redocly",
        "lint",
        "openapi.json",
        "--extends=recommended",
        "--format=summary",
        cwd=directory,
    )
    if "warning" in output.replace("Deprecation warning", ""):
        raise SystemExit(f"the linter has warnings:\n{output}")
    print("lint: no findings")


def typescript(directory: Path, ids: set[str]) -> None:
    run("node_modules/.bin/openapi-typescript", "openapi.json", "-o", "api.d.ts", cwd=directory)
    run("node_modules/.bin/tsc", "--noEmit", "--strict", "api.d.ts", cwd=directory)
    text = (directory / "api.d.ts").read_text()
    listed = text.partition("export interface operations {")[2]
    missing = {id for id in ids if f"    {id}: {{" not in listed}
    if missing:
        raise SystemExit(f"the TypeScript client lacks {sorted(missing)}")
    print(f"typescript: {len(ids)} operations")


def python(directory: Path, ids: set[str]) -> None:
    output = run(
        "python/bin/openapi-python-client",
        "generate",
        "--path",
        "openapi.json",
        "--output-path",
        "recalld_client",
        "--meta",
        "none",
        "--overwrite",
        cwd=directory,
    )
    if "Warning" in output:
        raise SystemExit(f"the Python client is incomplete:\n{output}")
    made = {path.stem for path in (directory / "recalld_client" / "api").rglob("*.py")}
    missing = {id for id in ids if re.sub("_+", "_", id).strip("_") not in made}
    if missing:
        raise SystemExit(f"the Python client lacks {sorted(missing)}")
    names = "\n".join(
        f"import recalld_client.api.{path.parent.name}.{path.stem}"
        for path in sorted((directory / "recalld_client" / "api").rglob("*/*.py"))
    )
    run("python/bin/python", "-c", names, cwd=directory)
    print(f"python: {len(ids)} operations")


def main(directory: Path) -> None:
    document = openapi()
    (directory / "openapi.json").write_bytes(document)
    ids = operation_ids(json.loads(document))
    install(directory)
    lint(directory)
    typescript(directory, ids)
    python(directory, ids)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        target = Path(sys.argv[1]).absolute()
        target.mkdir(parents=True, exist_ok=True)
        main(target)
    else:
        with tempfile.TemporaryDirectory() as made:
            main(Path(made))
