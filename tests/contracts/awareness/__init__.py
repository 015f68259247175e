"""Awareness: behaviour that its tables cannot express, one module per tool."""
