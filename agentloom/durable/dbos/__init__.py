"""Runs past one machine: the same engine on DBOS, an existing durable engine, with SQLite or PostgreSQL. Installed as `agentloom[dbos]`.

A run is a chain of *segments*, DBOS workflows named `RUN~1`, `RUN~2`, … Each ends with the run, or when the run waits for a person; a
decision or a resume begins the next one. What happens in a segment is written to its durable stream: the lines of a journal, as the file
runner writes them, and the events. Who takes a segment over after a death reads that stream first, and DBOS lets nobody write to it who
doesn't own the segment any more. `docs/scale.md` tells how it is used.
"""
