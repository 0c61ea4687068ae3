"""errors.py — what can go wrong, for people: every error a user can cause is one of the three kinds below.

Each message says what was found, what was wanted and what to do next.
"""


class BeamwoodError(Exception):
    """The base of all errors that beamwood raises on purpose."""


class DataError(BeamwoodError, ValueError):
    """Your data (a matrix, a list of labels, a line of a file) is not what the call needs."""


class SettingsError(BeamwoodError, ValueError):
    """An argument or a setting is out of range or does not fit the others."""


class FormatError(BeamwoodError):
    """A model file is damaged, foreign, or made by a newer version."""
