"""The promise, frozen: what the outside sees stands in files here, and the suite compares it with what is there now.

`python -m tests.contract` records it anew from the present code; see __main__.py.
"""
