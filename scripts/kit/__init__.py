"""What the benches, soaks, fuzzers and client tests share: caches of peers, and raw wires."""
