"""The two small languages inside a workflow's strings: ``{state.x}`` templates and router expressions. Knows no YAML."""
