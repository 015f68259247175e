"""The baselines of common SDKs, as data; see `conformance.report.baselines`."""
