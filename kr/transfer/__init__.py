"""The index as YAML, for people and older tools."""

INDEX = "index.yaml"
ARCHIVE = "_archived-index.yaml"
