"""One folder per page: ``page.py`` holds the class ``<Name>View`` with a method ``panel``."""
