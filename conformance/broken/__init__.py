"""A small correct server, and defects to break it with, one at a time."""
