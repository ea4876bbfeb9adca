"""What all pages share: the store, the selection, the worker, and parts of a page."""
