"""The native libraries can be loaded in any order of requests."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "order", ["load_usearch(); load_onnxruntime()", "load_onnxruntime(); load_usearch()"]
)
def test_the_native_libraries_work_together_in_either_order(order: str) -> None:
    code = (
        f"from store.embedding.native_libraries import *; {order};"
        "import numpy; print(numpy.ones(3) @ numpy.ones(3))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, capture_output=True)
