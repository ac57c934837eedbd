"""One training step each, to be timed in a process of its own.

The folder is run as a script, `python regard/bench/peers MODULE`, and may be so by an interpreter that has no regard:
`__main__.py`, `torch_loop.py` and `eole_step.py` import nothing of it.
"""
