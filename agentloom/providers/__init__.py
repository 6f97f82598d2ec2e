"""Model providers: clients, the gateway over them, prices, the catalogue of models."""
