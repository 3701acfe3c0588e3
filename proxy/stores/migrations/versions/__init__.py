"""One file per revision, oldest first. A revision only adds: older processes write beside newer ones."""
