"""The one door to models of language and of embeddings."""
