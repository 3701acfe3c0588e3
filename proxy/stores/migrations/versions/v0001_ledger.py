"""The ledger's first tables: attempts, how far the journals are drained, who writes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "attempts",
        sa.Column("attempt_id", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), primary_key=True),
        sa.Column("request_id", sa.Text, nullable=False),
        sa.Column("trace_id", sa.Text, nullable=False),
        sa.Column("attempt_no", sa.BigInteger, nullable=False),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("endpoint", sa.Text, nullable=False),
        sa.Column("streamed", sa.Boolean, nullable=False),
        sa.Column("started_at", sa.BigInteger, nullable=False),
        sa.Column("upstream", sa.Text, nullable=False),
        sa.Column("vendor", sa.Text, nullable=False),
        sa.Column("credential", sa.Text),
        sa.Column("model_alias", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("writer", sa.Text, nullable=False),
        sa.Column("ended_at", sa.BigInteger),
        sa.Column("ending", sa.Text),
        sa.Column("duration_us", sa.BigInteger),
        sa.Column("ttft_us", sa.BigInteger),
        sa.Column("served_model", sa.Text),
        sa.Column("service_tier", sa.Text),
        sa.Column("vendor_request_id", sa.Text),
        sa.Column("vendor_response_id", sa.Text),
        sa.Column("upstream_status", sa.BigInteger),
        sa.Column("rule_id", sa.Text),
        sa.Column("error_class", sa.Text),
        sa.Column("error_code", sa.Text),
        sa.Column("finish_reason", sa.Text),
        sa.Column("finish_inferred", sa.Boolean, nullable=False),
        sa.Column("vendor_usage", sa.Text),
        sa.Column("counted_input", sa.BigInteger, nullable=False),
        sa.Column("counted_output", sa.BigInteger, nullable=False),
        sa.Column("delivered_output", sa.BigInteger, nullable=False),
        sa.Column("tokenizer", sa.Text),
        sa.Column("bytes_in", sa.BigInteger, nullable=False),
        sa.Column("bytes_out", sa.BigInteger, nullable=False),
        sa.Column("events_in", sa.BigInteger, nullable=False),
        sa.Column("events_out", sa.BigInteger, nullable=False),
        sa.Column("notes", sa.Text),
        sa.Column("closed_by", sa.Text),
    )
    op.create_index("attempts_by_start", "attempts", ["started_at", "attempt_id"])
    running = sa.text("closed_by IS NULL")
    op.create_index("attempts_running", "attempts", ["writer"], sqlite_where=running, postgresql_where=running)
    op.create_table(
        "journal_progress",
        sa.Column("segment", sa.Text, primary_key=True),
        sa.Column("writer", sa.Text, nullable=False),
        sa.Column("drained", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "writers",
        sa.Column("writer", sa.Text, primary_key=True),
        sa.Column("instance", sa.Text, nullable=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("started_at", sa.BigInteger, nullable=False),
        sa.Column("seen_at", sa.BigInteger, nullable=False),
        sa.Column("lease_until", sa.BigInteger, nullable=False),
    )


def downgrade() -> None:
    for table in ("writers", "journal_progress", "attempts"):
        op.drop_table(table)
