"""Requests and return values, as every face (command line, MCP, HTTP) speaks them."""
