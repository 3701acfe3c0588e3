"""Runs the revisions on the connection that `schema.upgrade` hands over, inside its transaction and under its lock."""

from __future__ import annotations

from alembic import context

from proxy.stores.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
