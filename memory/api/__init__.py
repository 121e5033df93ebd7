"""The HTTP API: thin views over the services."""
