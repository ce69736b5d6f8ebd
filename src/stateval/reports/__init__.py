"""What people see of a run: progress while it goes on, and tables, ledger and verdicts at its end."""
