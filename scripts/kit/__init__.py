"""Shared by benchmarks, soak tests, fuzzers and client tests: peer packages and minimal clients."""
