"""The tab of a snapshot's files as cells."""
