"""Hindsight, Claude Recall and Context Harness: behaviour that their tables cannot express."""
