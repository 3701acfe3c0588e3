"""Vendors' own exports, read into one form (contract C3)."""

from proxy.books.invoices.reading import FORMS, read_invoice, read_invoices

__all__ = ["FORMS", "read_invoice", "read_invoices"]
