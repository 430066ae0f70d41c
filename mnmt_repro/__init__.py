"""Code, cached results and pages that re-make two papers on multilingual machine translation."""

__version__ = "1.0.0"
