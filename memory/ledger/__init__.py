"""The one ledger: evidence in and out, beliefs made, confidence computed anew, and what is due for the gates."""
