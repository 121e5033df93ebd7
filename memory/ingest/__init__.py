"""What comes in: lines are checked, and become episodes."""
