"""What can be talked to: one file a kind of target."""
