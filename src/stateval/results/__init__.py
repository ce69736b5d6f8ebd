"""The results directory: what lies in it, how it is written so that nothing finished is lost, how it is read."""
