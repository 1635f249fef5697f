"""Commits to views: metadata documents from version to version, simulations, and saving."""
