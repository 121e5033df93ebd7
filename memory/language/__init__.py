"""What the words of a language tell, English and German: clauses, who is meant, how a thing is said, and of what."""
