"""Fault injection: killed processes, power cuts, full and read-only disks, damaged files.

`writing_child`, `erasing_child` and `migrating_child` run as processes of their own, to be killed.
`verifier` checks the data directory they leave behind.
"""
