"""Semantic colours: what the words of a workflow mean, where YAML sees only texts."""
