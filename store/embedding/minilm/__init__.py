"""all-MiniLM-L6-v2 on the CPU, from the packages that are installed: no hub, no torch."""
