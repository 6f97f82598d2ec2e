"""Why something can't be done: errors of the database in a line each, with the cure where there is one, and of workflows."""

from __future__ import annotations

from agentloom.core.results import JSON
from agentloom.durable.dbos.place import Place, hidden
from agentloom.errors import AgentLoomError


def refused(error: AgentLoomError) -> dict[str, JSON]:
    """Return what a segment gives back that can't be performed."""
    return {"version": 1, "refused": str(error), "code": error.exit_code}


def reason(error: object, place: Place) -> str:
    """Return why a database can't be used, without its password, with the cure where there is one."""
    text = hidden(in_a_line(error), place)
    if "permission denied" in text:
        return (
            f"{text}; a role that may do it prepares it with `agentloom worker --prepare`, and gives this one its rights:"
            " docs/scale.md says which"
        )
    if "workflow_status" in text or ("does not exist" in text and "relation" in text):
        return f"no worker has prepared it yet; start one with `agentloom worker --on {place.name}`"
    if "certificate verify failed" in text or "server certificate" in text or "root certificate" in text:
        return f"{text}; `sslrootcert=FILE` in the address names the certificate of who signed the server's"
    return text


def in_a_line(error: object) -> str:
    """Return what an error says, in one line of at most 300 characters."""
    text = " ".join(str(getattr(error, "orig", None) or error).split())
    return text[:300] or type(error).__name__
