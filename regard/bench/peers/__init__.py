"""Who is timed, each in a process of its own.

The folder is run as a script, `python regard/bench/peers KIND MODULE`, and may be so by an interpreter that has no
regard: only the modules whose names begin with `regard_` import it, and only those of a peer import that peer.
`training.py`, `translating.py` and `multiplying.py` are the kinds.
"""
