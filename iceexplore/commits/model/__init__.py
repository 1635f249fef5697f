"""What a commit changes (`Change`), how its metadata is laid out (`LayoutOptions`) and how it is written."""
