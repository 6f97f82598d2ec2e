"""What must hold before a name is changed; each check raises ``Refusal`` with the reason."""
