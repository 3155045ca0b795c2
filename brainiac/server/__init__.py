"""The doors of a daemon: REST, MCP and an OpenAI-compatible endpoint, behind one guard."""
