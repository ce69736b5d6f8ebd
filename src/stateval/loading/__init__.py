"""Users' Python files as modules of their own, and the names that a suite may use for its parts."""
