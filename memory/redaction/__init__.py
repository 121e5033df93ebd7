"""Secrets are taken out of texts before they are stored and before they are sent to a model."""
