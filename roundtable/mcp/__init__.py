"""Seats as MCP servers: the room tools and the memory tools for any agent that speaks the Model Context Protocol.

``tools`` says what there is, ``server`` is one seat behind the protocol, ``stdio`` and ``http`` carry it. The ``mcp``
package takes most of a second to import, so that only these last three do, and only once a server starts.
"""
