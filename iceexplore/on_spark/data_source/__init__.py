"""The Spark data source `iceexplore`."""
