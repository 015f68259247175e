"""The version, without importing anything: the bridge compares it with the daemon's."""

VERSION = "0.1.0"
