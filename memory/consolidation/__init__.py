"""From episodes to beliefs, step by step: extract, cluster, synthesize, classify, gate, finish."""
