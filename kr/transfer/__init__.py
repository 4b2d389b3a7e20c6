"""The index as YAML, for people and older tools."""
