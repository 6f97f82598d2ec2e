"""The language server of agentloom, for any editor that speaks the Language Server Protocol."""
