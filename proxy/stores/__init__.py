"""The I/O that is neither vendor nor client: ledger, rule files and their watcher, inbox, recordings, the simulator."""
