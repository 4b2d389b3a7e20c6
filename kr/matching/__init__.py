"""What answers what: which entry of the cache answers a request. Pure."""
