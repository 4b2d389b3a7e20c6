"""The only network: one file per source, one protocol, and nothing else knows how they are reached."""
