"""Runs beside one another: the same samples paired, and what differs between the runs."""
