"""The editor's features: one module each, between the protocol's parameters and the plain values of `agentloom.ide`."""
