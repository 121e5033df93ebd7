"""Reading: a person's new messages, in order, against what is believed: claims, verdicts and beliefs come of it."""
