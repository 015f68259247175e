"""A small correct reference server, and defects that can be injected into it one at a time."""
