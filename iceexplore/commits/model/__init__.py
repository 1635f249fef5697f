"""Define what a commit is made from: the file changes (`Change`), the metadata layout (`LayoutOptions`), the writer."""
