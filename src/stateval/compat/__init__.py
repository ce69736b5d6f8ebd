"""Names of other evaluation packages, for users' files that were written for these."""
