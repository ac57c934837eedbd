"""Speed, measured beside peers in the same run on the same machine."""
