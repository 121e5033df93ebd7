"""What a question asks for: a time, a task, somebody's own matters; and which of its words say something.

English and German are read by closed lists (words.toml). A question in any other language is answered all the same, by
its vector and by how rare its words are.
"""
