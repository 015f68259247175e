"""A small correct server, and flaws to break it with, one at a time."""
