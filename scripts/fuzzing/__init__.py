"""Fuzzing the wire: frames no sane client sends, and an oracle for what may come back."""
