"""The plain data that flows through stateval, one concept a file. No input, no output, no behaviour beyond itself."""
