"""The interfaces of kr for programs that stay: MCP over stdio and HTTP, REST, and a page for people.

``worker`` runs the operations of ``kr.app`` in threads; ``mcp`` has the seven tools and is ``kr mcp``; ``http`` is what
``kr serve`` offers, ``page`` and ``rendering`` its page for people, ``access`` what stands before it all.
"""
