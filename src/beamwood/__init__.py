"""beamwood: train and serve sparse linear extreme multi-label ranking trees."""

from beamwood.errors import BeamwoodError, DataError, FormatError, SettingsError

__version__ = "0.1.0"

__all__ = ["BeamwoodError", "DataError", "FormatError", "SettingsError"]
