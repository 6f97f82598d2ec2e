"""The rules. Each is a generator function with a docstring; ``RULES`` in ``registry`` lists them."""
