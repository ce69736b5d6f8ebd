"""The Python face: suites made of objects, run from a script, a notebook or a test."""
