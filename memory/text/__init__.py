"""Sentences and quotes in any language: what is needed of words without rules for what they mean."""
