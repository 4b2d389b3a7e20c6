"""One index of documentation for installed packages and folders (rule 3.5): read, kept in the user's cache, asked by words."""
