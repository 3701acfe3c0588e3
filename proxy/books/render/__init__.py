"""A document in each of its forms: terminal, JSON, CSV, spreadsheet, Parquet, page. One document, the same bytes."""
