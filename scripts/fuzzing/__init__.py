"""Fuzzer of the JSON-RPC transports: frame corpus, mutations, test oracle and runner."""
