"""The schema, and the way to it from the release before."""

LAST_OF_0_1 = "0045_rules_of_rivals"
