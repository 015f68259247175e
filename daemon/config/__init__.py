"""Settings: the table of settings, their parsers, loading, and the typed values.

The bridge and the health probe import this package and must start fast, so it uses the standard
library only and imports expensive modules late.
"""

from daemon.config.directories import Directories, find_directories
from daemon.config.loading import load, unknown_variables
from daemon.config.settings import Embedding, Settings
from daemon.config.table import SETTINGS, Setting

__all__ = [
    "SETTINGS",
    "Directories",
    "Embedding",
    "Setting",
    "Settings",
    "find_directories",
    "load",
    "unknown_variables",
]
