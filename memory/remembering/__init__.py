"""The direct path: a text is remembered at once, and its facts meet what is believed without waiting for a cycle."""
