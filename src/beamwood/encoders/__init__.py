"""Texts in, a row of numbers per text out: by functions of the caller's, by those of plug-ins, or learnt from rows."""

from beamwood.encoders.onnx import OnnxEncoder

__all__ = ["OnnxEncoder"]
