"""The runner: takes a plan, keeps as many samples in flight as it allows, and hands each result to the journal."""
