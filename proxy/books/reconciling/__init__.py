"""An invoice and the ledger made to agree: what differs, and why, line by line (contract C3)."""
