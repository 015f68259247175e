"""all-MiniLM-L6-v2 on the CPU, from installed packages; downloads nothing and needs no PyTorch."""
