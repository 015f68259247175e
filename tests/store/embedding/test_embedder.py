"""Choosing an embedder imports nothing heavy."""

import subprocess
import sys


def test_numpy_and_the_models_are_not_imported_before_the_first_text() -> None:
    code = (
        "import sys, store.sqlite.engine, store.search.hybrid\n"
        "from store.embedding.selection import choose_embedder\n"
        "choose_embedder()\n"
        "heavy = {'numpy', 'usearch', 'onnxruntime'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
