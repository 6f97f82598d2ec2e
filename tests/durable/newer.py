"""The program as its next version will be, as far as others can tell: the journal's version is raised before anything reads it."""

import agentloom.durable.journal

agentloom.durable.journal.VERSION += 1

if __name__ == "__main__":
    from agentloom.cli import main

    main()
