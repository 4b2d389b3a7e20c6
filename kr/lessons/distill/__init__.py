"""From a failure to two lines. Pure."""
