"""The knowledge base as people look after it: index, archive, history, and what a project needs of it."""
