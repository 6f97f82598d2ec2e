"""agentloom: LLM workflows as YAML that you can trust."""

__version__ = "0.6.0"
