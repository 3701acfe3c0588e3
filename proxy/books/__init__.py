"""The books: reports over the ledger, invoices of vendors, and the two made to agree (contract L4, C3)."""
