"""Data of other memory programs, made by running them, for the tests of the importers."""
