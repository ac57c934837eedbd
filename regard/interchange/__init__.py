"""Models of other libraries: their directories opened as they are. Everything in one is a stranger's data: it is
measured before it is read, and nothing in it is executed."""
