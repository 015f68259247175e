"""Checks that run for every tool in the tables, on every transport and in every revision."""
