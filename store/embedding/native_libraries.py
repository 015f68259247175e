"""The native libraries, loaded on first use and in the one order that works.

Importing usearch and after it onnxruntime ends the process with a segmentation fault (usearch from
2.26.2, onnxruntime 1.26 to 1.31); the other order is fine. Whoever needs either asks here. Both
come without types, which is why they leave here as `Any` and are wrapped where they are used.

NumPy's linear algebra is told to use one thread, before NumPy is first imported: our products are
a matrix by a vector, which a second thread does not speed up, and its threads wait by spinning
(measured on two busy cores: 17 ms of CPU a search instead of 5). Who sets the variable wins.
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
    """usearch's index module, with onnxruntime before it when that is installed."""
    with _lock:
        with suppress(ImportError):  # not installed: nobody can import it later either
            _import_onnxruntime()
        return importlib.import_module("usearch.index")


def load_numkong() -> Any:
    """The vector arithmetic that usearch brings along: int8 products NumPy has no fast form of."""
    return importlib.import_module("numkong")


def _import_onnxruntime() -> Any:
    onnxruntime: Any = importlib.import_module("onnxruntime")
    onnxruntime.disable_telemetry_events()
    return onnxruntime
