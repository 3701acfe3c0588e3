"""Counting and the ledger row: sans-I/O. What was used, told in one way whatever the vendor says."""
