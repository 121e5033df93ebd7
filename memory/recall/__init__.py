"""Recall: what comes to mind for a query, and what coming to mind changes."""
