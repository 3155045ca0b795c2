"""Organization: long-term memory evolves by how it is used; nothing is lost by it (seeds S13, S15)."""
