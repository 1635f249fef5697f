"""What all widgets share: the base widget, work in threads, assets."""
