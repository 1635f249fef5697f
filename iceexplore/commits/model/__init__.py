"""The change that a commit makes (`Change`), the layout of its metadata (`LayoutOptions`), and its writer."""
