"""What a user can mend.

The command line prints the message of a `RegardError` as one line and exits with 1; a server answers 4xx. A message
says what is wrong, where (file, line, key), with which values, and what to do about it.
"""


class RegardError(Exception):
    """Something outside the code is wrong; the message is one line that names the place and the remedy."""


class ConfigError(RegardError):
    """A recipe, a `--set` or an option."""


class CorpusError(RegardError):
    """A text file."""


class CheckpointError(RegardError):
    """A saved model: cut, changed, of another version, or not there."""


class RunError(RegardError):
    """A run: its directory, its memory, its disk, its gradients."""
