"""The tool surfaces of other memory systems, one module each; see README.md here."""
