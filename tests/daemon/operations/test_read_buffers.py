"""Read buffers come from the heap, not from a mapping of their own."""

import subprocess
import sys

import pytest

PROGRAM = """
import ctypes
from daemon.operations import read_buffers

class Report(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "abcdefghij"]

report = ctypes.CDLL(None).mallinfo2
report.restype = Report

def mapped(size):
    before = report().d
    buffer = bytes(size)
    return report().d - before

print(mapped(256 * 1024))
read_buffers.keep_on_heap()
print(mapped(256 * 1024))
"""


def test_a_read_buffer_gets_no_mapping_of_its_own() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    if "mallinfo2" in done.stderr:
        pytest.skip("this C library does not report its mappings")
    assert done.stdout.split() == ["1", "0"], done.stderr
