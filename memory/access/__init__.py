"""Workspaces, projects and keys: making them, finding them, and what they allow."""
