"""The tab that shows a snapshot's files as cells."""
