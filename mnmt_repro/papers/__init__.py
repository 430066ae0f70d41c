"""The companion of two papers: which runs make which figure, effects, claims, charts and pages.

The library does not import it.
"""
