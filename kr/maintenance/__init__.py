"""Looking after a knowledge base: what ``kr doctor`` finds and repairs, and ``kr db``."""
