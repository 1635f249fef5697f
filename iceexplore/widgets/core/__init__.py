"""The base of all widgets: the base class, work in threads, scripts and styles."""
