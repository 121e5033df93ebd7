"""Benchmarks, one file a question: ratios within one run."""
