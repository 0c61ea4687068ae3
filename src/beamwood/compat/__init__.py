"""Modules that stand in for those of other programs, so that what was written for them runs on beamwood."""
