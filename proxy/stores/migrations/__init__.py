"""Alembic's environment for the ledger. Shipped with the package and run at start by `schema.upgrade`."""
