"""The workflow file as pydantic models, and what is generated from them."""
