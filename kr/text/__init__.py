"""Words, sentences and Markdown: pure functions over text."""
