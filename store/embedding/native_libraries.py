"""Loads the native libraries on first use, in the only order that works.

Importing usearch before onnxruntime ends the process with a segmentation fault (usearch from
2.26.2, onnxruntime 1.26 to 1.31); the other order works. So every module that needs one of them
loads it here. Neither has type annotations, so both are returned as `Any`; the modules that use
them wrap them in types of their own.

NumPy's linear algebra is limited to one thread before NumPy is first imported. Our products are of
a matrix and a vector, which a second thread does not speed up, and idle BLAS threads spin: on two
busy cores a search took 17 ms of CPU instead of 5. A value set in the environment has precedence.
"""

import importlib
import os
import threading
from contextlib import suppress
from typing import Any, Final

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

#: The official Linux builds of onnxruntime since 1.29 upload usage events by default. They read
#: these variables (the second one in development versions) when the library is loaded; the API that
#: disables events comes too late for the first one. Child processes inherit them.
TELEMETRY_VARIABLES: Final = ("ORT_DISABLE_TELEMETRY", "ORT_TELEMETRY_DISABLED")
os.environ.update(dict.fromkeys(TELEMETRY_VARIABLES, "1"))

_lock = threading.Lock()


def load_onnxruntime() -> Any:
    with _lock:
        return _import_onnxruntime()


def load_usearch() -> Any:
    """The index module of usearch. onnxruntime is imported first, if it is installed."""
    with _lock:
        with suppress(ImportError):
            _import_onnxruntime()
        return importlib.import_module("usearch.index")


def load_numkong() -> Any:
    """NumKong, a dependency of usearch: fast int8 products, which NumPy lacks."""
    return importlib.import_module("numkong")


def _import_onnxruntime() -> Any:
    onnxruntime: Any = importlib.import_module("onnxruntime")
    onnxruntime.disable_telemetry_events()
    return onnxruntime
