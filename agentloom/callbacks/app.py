"""The routes of the callback server, and what each may be asked."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any, cast
from urllib.parse import parse_qs

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from agentloom.callbacks.access import COOKIE, Access, is_own_page
from agentloom.callbacks.page import POLICY, entrance, listing, message
from agentloom.checkpointing.files import is_run_id
from agentloom.core.keeping.waiting import Decision, Decisions, NotTaken, Paused, Stopping, Unable
from agentloom.errors import CheckpointSchemaError

MOST_BODY = 64 * 1024
MOST_WEBHOOK = 1024 * 1024
BODY_SECONDS = 10.0
"""How long a request's body may take to arrive."""

LOGIN_SECONDS = 0.5
"""How long a wrong token is thought about, one after the other."""

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
WORDS = {"approved": "approved", "rejected": "rejected"}

Handler = Callable[[Request], Awaitable[Response]]
log = logging.getLogger(__name__)


def make_app(decisions: Decisions, access: Access) -> Starlette:
    """Return the application."""
    routes = _Routes(decisions, access)
    return Starlette(
        routes=[
            Route("/", routes.page, methods=["GET"]),
            Route("/login", routes.login, methods=["POST"]),
            Route("/decide", routes.decide, methods=["POST"]),
            Route("/pending", routes.pending, methods=["GET"]),
            Route("/approve/{run_id:path}", routes.approve, methods=["POST"]),
            Route("/reject/{run_id:path}", routes.reject, methods=["POST"]),
            Route("/webhook", routes.webhook, methods=["POST"]),
        ],
        exception_handlers={HTTPException: _refusal, Exception: _fault},
    )


class _Routes:
    def __init__(self, decisions: Decisions, access: Access) -> None:
        self._decisions = decisions
        self._access = access
        self._wrong = anyio.Lock()

    # --- for programs

    async def pending(self, request: Request) -> Response:
        """`GET /pending`: the runs that wait."""
        self._admit(request)
        runs = await self._waiting()
        return _json(
            {
                "paused_runs": [
                    {
                        "run_id": run.run_id,
                        "workflow_name": run.workflow_name,
                        "paused_step_id": run.step_id,
                        "updated_at": run.updated_at,
                    }
                    for run in runs
                ]
            }
        )

    async def approve(self, request: Request) -> Response:
        """`POST /approve/<id>`."""
        return await self._decided(request, "approved")

    async def reject(self, request: Request) -> Response:
        """`POST /reject/<id>`."""
        return await self._decided(request, "rejected")

    async def _decided(self, request: Request, decision: Decision) -> Response:
        self._admit(request)
        run_id = request.path_params["run_id"]
        step = request.query_params.get("step_id")
        body = await _body(request, MOST_BODY)
        if body.strip():
            told = _object(body)
            step = told.get("step_id", step)
            if step is not None and not isinstance(step, str):
                raise HTTPException(400, "`step_id` must be a text")
        run = await self._take(run_id, decision, step, None)
        return _json(
            {
                "run_id": run.run_id,
                "decision": decision,
                "step_id": run.step_id,
                "message": f"{WORDS[decision]}; the run goes on",
            },
            202,
        )

    async def webhook(self, request: Request) -> Response:
        """`POST /webhook`: takes what a gate's `notify` sends, and logs it."""
        self._admit(request)
        told = _object(await _body(request, MOST_WEBHOOK))
        log.info("webhook: %s", json.dumps(told)[:500])
        return _json({"status": "received"})

    # --- for people

    async def page(self, request: Request) -> Response:
        """`GET /`: what waits, with buttons."""
        self._meant_for_us(request)
        if not self._access.has_session(request.cookies):
            return _html(entrance())
        try:
            runs = await self._waiting()
        except HTTPException as refused:
            return _html(message("Not now", refused.detail), refused.status_code)
        return _html(listing(runs, self._access.csrf, _note(request)))

    async def login(self, request: Request) -> Response:
        """`POST /login`: the token, for a cookie."""
        self._own_page(request)
        given = _form(await _body(request, MOST_BODY)).get("token", "")
        if not self._access.is_token(given):
            async with self._wrong:  # guessing takes time
                await anyio.sleep(LOGIN_SECONDS)
            return _html(entrance("That is not the token."), 401)
        answer = RedirectResponse("/", 303, headers=HEADERS)
        answer.set_cookie(
            COOKIE, self._access.session, httponly=True, samesite="strict", secure=request.url.scheme == "https"
        )
        return answer

    async def decide(self, request: Request) -> Response:
        """`POST /decide`: a button of the page."""
        self._own_page(request)
        form = _form(await _body(request, MOST_BODY))
        if not self._access.has_session(request.cookies) or not self._access.is_csrf(form.get("csrf", "")):
            return _html(message("Not done", "This page is too old, or not ours. Open the list again."), 403)
        decision = form.get("decision")
        if decision not in WORDS:
            return _html(message("Not done", "A decision is `approved` or `rejected`."), 400)
        try:
            run = await self._take(
                form.get("run_id", ""), cast("Decision", decision), form.get("step_id"), form.get("updated_at")
            )
        except HTTPException as refused:
            return _html(message("Not done", refused.detail), refused.status_code)
        return RedirectResponse(f"/?done={decision}&run={run.run_id}", 303, headers=HEADERS)

    # --- common

    async def _waiting(self) -> list[Paused]:
        try:
            return await self._decisions.waiting()
        except Stopping as error:
            raise _later(error) from None

    async def _take(self, run_id: str, decision: Decision, step: str | None, updated_at: str | None) -> Paused:
        if not is_run_id(run_id) or len(run_id) > 200:
            raise HTTPException(400, "that is no run id; it has letters, digits, `.`, `_` and `-`")
        try:
            return await self._decisions.decide(run_id, decision, step, updated_at)
        except KeyError:
            raise HTTPException(404, f"there is no run `{run_id}`") from None
        except NotTaken as error:
            raise HTTPException(409, str(error)) from None
        except Stopping as error:
            raise _later(error) from None
        except (Unable, CheckpointSchemaError) as error:
            raise HTTPException(500, str(error)) from None

    def _admit(self, request: Request) -> None:
        """Let a program in: with the token, or without one on loopback as long as no foreign page is behind it."""
        self._meant_for_us(request)
        if self._access.has_token(request.headers):
            return
        if self._access.needs_token:
            raise HTTPException(401, "the token is missing or wrong", {"WWW-Authenticate": "Bearer"})
        if not is_own_page(request.headers):
            raise HTTPException(403, "requests from other sites are refused")

    def _own_page(self, request: Request) -> None:
        self._meant_for_us(request)
        if not is_own_page(request.headers):
            raise HTTPException(403, "requests from other sites are refused")

    def _meant_for_us(self, request: Request) -> None:
        if not self._access.is_meant_for_us(request.headers):
            raise HTTPException(421, "without a token this server answers to `localhost` only")


def _later(error: Stopping) -> HTTPException:
    return HTTPException(503, str(error), {"Retry-After": "5"})


async def _body(request: Request, most: int) -> bytes:
    """Return the body. Raises ``HTTPException`` for one that is too large, or takes too long."""
    too_large = HTTPException(413, f"the body is larger than {most} bytes", {"Connection": "close"})
    length = request.headers.get("content-length", "0")
    if length.isdigit() and int(length) > most:
        raise too_large
    data = bytearray()
    try:
        with anyio.fail_after(BODY_SECONDS):
            async for chunk in request.stream():
                data += chunk
                if len(data) > most:
                    raise too_large
    except TimeoutError:
        raise HTTPException(408, "the body takes too long", {"Connection": "close"}) from None
    except ClientDisconnect:
        raise HTTPException(400, "the body is not whole") from None
    return bytes(data)


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise HTTPException(400, "the body is no JSON") from None
    if not isinstance(found, dict):
        raise HTTPException(400, "the body must be a JSON object")
    return found


def _form(body: bytes) -> dict[str, str]:
    try:
        fields = parse_qs(body.decode("ascii", "replace"), max_num_fields=20)
    except ValueError:
        raise HTTPException(400, "the form can't be read") from None
    return {name: values[0] for name, values in fields.items()}


def _note(request: Request) -> str | None:
    done, run_id = request.query_params.get("done", ""), request.query_params.get("run", "")
    if done not in WORDS or not is_run_id(run_id) or len(run_id) > 200:
        return None
    return f"Run {run_id} is {WORDS[done]} and goes on."


def _json(data: dict[str, Any], status: int = 200) -> Response:
    return JSONResponse(data, status, headers=HEADERS)


def _html(text: str, status: int = 200) -> Response:
    return HTMLResponse(text, status, headers=HEADERS)


async def _refusal(request: Request, error: Exception) -> Response:
    refused = cast("HTTPException", error)
    return JSONResponse(
        {"error": refused.detail}, refused.status_code, headers={**HEADERS, **dict(refused.headers or {})}
    )


async def _fault(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": "a fault in the server; its log says more"}, 500, headers=HEADERS)
