"""One module per page; each has a class ``<Name>View`` with a method ``panel``."""
