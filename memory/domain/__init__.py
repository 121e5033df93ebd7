"""Pure rules and maths: no database, no clock, no framework."""
