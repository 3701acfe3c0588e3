"""Calling upstreams: sessions, deadlines, the pump between an upstream and its client. The only place that awaits
bytes."""
