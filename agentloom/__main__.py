"""``python -m agentloom``."""

from agentloom.cli import main

if __name__ == "__main__":
    main()
