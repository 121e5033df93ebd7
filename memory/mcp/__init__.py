"""Tools for agents by the Model Context Protocol: thin as the HTTP API is, under the same keys."""
