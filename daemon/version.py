"""The version of recalld; the bridge compares it with the version of the daemon."""

VERSION = "0.1.0"
