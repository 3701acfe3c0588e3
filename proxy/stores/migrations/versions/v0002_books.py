"""What finance needs: the vendor's usage in one vocabulary, our count of reasoning, prices and costs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_COSTS = ("cost_input", "cost_cache_read", "cost_cache_write", "cost_output", "own_cost_input", "own_cost_output")
_USAGE = (
    *(f"usage_{name}" for name in ("input", "output", "cache_read", "cache_write", "reasoning", "total")),
    *("billed_input", "billed_output"),
)
_WHOLE = ("request_bytes", "counted_reasoning")
_TEXTS = ("price_version", "currency", "count_formula", "usage_state", "usage_told", "price_tier")


def upgrade() -> None:
    """Adds only: a process of the version before goes on writing beside."""
    opened = ("request_bytes", "max_output", "price_version", "currency", "cost_bound")
    counted = ("counted_reasoning", "count_formula")
    for name in (*opened, *counted, "usage_state", "usage_told", *_USAGE, "price_tier", *_COSTS):
        if name in _WHOLE:
            op.add_column("attempts", sa.Column(name, sa.BigInteger, nullable=False, server_default="0"))
        else:
            op.add_column("attempts", sa.Column(name, sa.Text if name in _TEXTS else sa.BigInteger))
    op.create_table(
        "repricings",
        sa.Column("attempt_id", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), primary_key=True),
        sa.Column("price_version", sa.Text, primary_key=True),
        sa.Column("price_tier", sa.Text, primary_key=True),
        sa.Column("repriced_at", sa.BigInteger, primary_key=True),
        sa.Column("currency", sa.Text, nullable=False),
        *(sa.Column(name, sa.BigInteger) for name in _COSTS),
    )


def downgrade() -> None:
    raise RuntimeError("revisions only add: an older program works on this schema as it is")
