"""Write, rewrite and compact data files on Spark."""
