"""Commits to views: derive the next metadata document, simulate commits, and save views."""
