"""YAML text to nodes with places. The only importer of ruamel.yaml."""
