def excerpt(text, query, limit=400):
    return text[:limit]
