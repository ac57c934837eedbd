"""What regard offers over HTTP, on this machine only."""
