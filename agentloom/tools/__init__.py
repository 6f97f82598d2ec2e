"""Tools that steps can run: the registry, the built-in ones, the sandbox."""
