"""What several kinds of tests share: fake upstreams, a raw client, a clock, ways to cut."""
