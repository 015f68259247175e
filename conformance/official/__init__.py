"""The official JSON schemas of the five revisions, as data."""
