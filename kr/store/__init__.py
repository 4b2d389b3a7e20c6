"""The only SQL: the index, the archive, the ledgers, and the report files that stand beside them."""
