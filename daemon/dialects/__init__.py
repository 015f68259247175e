"""Tool surfaces of other memory systems, one module or package each; see README.md."""
