"""One grammar per API family: vendor JSON to canonical chunks, and canonical chunks to each client's events."""
