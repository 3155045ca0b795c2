"""From short-term to long-term memory: what was said becomes pages, losing nothing (design 6, Promotion)."""
