"""The faces of kr for programs that stay: MCP over stdio and HTTP, a REST interface, a page for people (SPEC 8).

``service`` runs the operations of ``kr.app`` in worker threads; ``mcp`` has the five MCP tools, ``stdio`` is
``kr mcp``; ``http`` is the interface of ``kr serve``, ``guard`` what stands before it, ``metrics`` what it counts.
"""
