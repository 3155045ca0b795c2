"""REST: the verbs, the state of the brain and its events under `/api`, and their schema as OpenAPI."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from brainiac import __version__
from brainiac.brain import Brain
from brainiac.errors import UserError
from brainiac.events import Event, ExchangeMadePrivate, ExchangeOffRecord, ModelCalled, NoteOffRecord, PromptAnswered
from brainiac.formats.authors import client_label
from brainiac.health.overview import overview
from brainiac.llm.gate import Gate
from brainiac.server.guard import ORIGIN
from brainiac.verbs import VERBS, Caller, verb_named

CLIENT_HEADER = "x-brainiac-client"
STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
LOOK_SECONDS = 0.3
KEEP_ALIVE_SECONDS = 15.0
MAX_REPLAYED = 1_000  # missed events that are sent at a time
THREADS = 64  # `ask` and `remember` wait in them


async def in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function that blocks returns; where the client disconnects, nobody waits for it any more."""
    return await anyio.to_thread.run_sync(partial(function, *arguments), abandon_on_cancel=True)


async def json_of(request: Request) -> dict[str, Any]:
    """Return the body of a request.

    Raises:
        UserError: It is no JSON object.
    """
    try:
        body = json.loads(await request.body() or b"{}")
    except (ValueError, RecursionError) as error:
        raise UserError("the body is no JSON") from error
    if not isinstance(body, dict):
        raise UserError("the body must be a JSON object")
    return body


def rest_routes(brain: Brain, is_stopping: Callable[[], bool]) -> list[Route]:
    """Return what is under `/api`.

    Args:
        brain: The daemon's.
        is_stopping: Returns whether the server is to end, and with it its streams.
    """

    async def tool(request: Request) -> Response:
        name = request.headers.get(CLIENT_HEADER, "")  # that a client gives itself: a label
        # our server of MCP over stdio calls as `mcp:…`; every other name gets the door `api`
        label = client_label("mcp" if name.startswith("mcp:") else "api", name.removeprefix("mcp:"))
        call, caller = verb_named(request.path_params["tool"]).call, Caller(label, request.scope[ORIGIN])
        return JSONResponse(await in_thread(call, brain, await json_of(request), caller))

    async def status(request: Request) -> Response:
        return Response(await in_thread(_status, brain), media_type="application/json")

    async def events(request: Request) -> Response:
        sequence, after = brain.journal.last()[0], request.query_params.get("after", "")
        if after := request.headers.get("last-event-id") or after:
            event = await in_thread(brain.journal.find, after) if after.isascii() and len(after) <= 64 else None
            if event is None:
                raise UserError(f"no event is called {after[:64]!r}; leave it out to begin with what happens next")
            sequence = event.seq
        return StreamingResponse(_stream(brain, sequence, is_stopping), 200, STREAM_HEADERS, "text/event-stream")

    return [
        Route("/api/openapi.json", lambda request: JSONResponse(openapi())),
        Route("/api/status", status),
        Route("/api/events", events),
        Route("/api/{tool}", tool, methods=["POST"]),
    ]


def _status(brain: Brain) -> str:
    """Return the overview of a brain as JSON, without hidden files and the places of this machine's folders."""
    text = json.dumps(asdict(overview(brain, Gate(brain).knows)), default=str)
    for place in (brain.root, brain.places.state, brain.places.config, Path.home()):
        if place.name:  # whose home is `/`, as a service's may be, gives nothing away
            text = text.replace(json.dumps(str(place))[1:-1], json.dumps(place.name)[1:-1])
    return text


# --- events --------------------------------------------------------------------------------------------------------


async def _stream(brain: Brain, sequence: int, is_stopping: Callable[[], bool]) -> AsyncIterator[str]:
    """Yield events as any process records them; in between comments that keep the connection open."""
    yield "retry: 1000\n\n"
    silent_seconds = 0.0
    # the journal is looked at again and again, since other processes write it too
    while not is_stopping():
        sequence, texts = await in_thread(_after, brain, sequence)
        for text in texts:
            yield text
        silent_seconds = 0.0 if texts else silent_seconds + LOOK_SECONDS
        if silent_seconds > KEEP_ALIVE_SECONDS:
            silent_seconds = 0.0
            yield ": still here\n\n"
        await asyncio.sleep(LOOK_SECONDS)


def _after(brain: Brain, sequence: int) -> tuple[int, list[str]]:
    """Return the number of the last event that was read after one with a number, and those events as text for a client.

    Events that no client may see are read too, but have no text.
    """
    last = sequence
    if brain.journal.last()[0] <= sequence:
        return last, []
    gate = Gate(brain)
    texts: list[str] = []
    for event in brain.journal.events(since_seq=sequence):
        last = event.seq
        if values := _values_of(brain, gate, event):
            texts.append(f"id: {event.id}\nevent: {event.kind}\ndata: {json.dumps(values, ensure_ascii=False)}\n\n")
        if len(texts) >= MAX_REPLAYED:
            break
    return last, texts


# these say that something was private or off the record, or may be of what was, which no client may know
_HIDDEN = (NoteOffRecord, ExchangeOffRecord, ExchangeMadePrivate, ModelCalled)
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def _values_of(brain: Brain, gate: Gate, event: Event) -> dict[str, Any] | None:
    """Return what a client gets of an event; None for one whose files, or an exchange that it names, it may not see.

    It gets no fields of the event, which may be of a private page, and no names of files that were deleted, since
    nothing says any more whether they were private.
    """
    paths = [change.path for change in event.changes]
    named = {event.id, event.cause or "", *_ID.findall(json.dumps(event.data))}
    is_off_record = isinstance(event.what, PromptAnswered) and not paths
    if is_off_record or isinstance(event.what, _HIDDEN) or any(map(gate.is_private_by_now, named)):
        return None
    paths_to_show = [path for path in paths if brain.tree.absolute(path).is_file() and gate.knows(path)]
    if paths and not paths_to_show:
        return None
    return {"id": event.id, "at": event.at, "kind": event.kind, "by": event.by, "paths": paths_to_show}


# --- the schema ----------------------------------------------------------------------------------------------------


def openapi() -> dict[str, Any]:
    """Return the schema of `/api`, as OpenAPI 3.1."""
    message = {"error": {"type": "object", "required": ["message", "type", "code"]}}
    problem = {"type": "object", "required": ["error"], "properties": message}

    def content(schema: dict[str, Any]) -> dict[str, Any]:
        return {"application/json": {"schema": schema}}

    def described(name: str, title: str, result: str) -> dict[str, Any]:
        """Return the description of an endpoint whose result has these fields, of any type."""
        fields = result.split()
        answer = {"type": "object", "required": fields, "properties": {field: {} for field in fields}}
        right = {"description": "The answer", "content": content(answer)}
        wrong = {"description": "What is wrong, and what to do", "content": content(problem)}
        return {"operationId": name, "summary": title, "responses": {"200": right, "default": wrong}}

    paths: dict[str, Any] = {}
    for name, verb in VERBS.items():
        body = {"required": True, "content": content({"$ref": f"#/components/schemas/{name}"})}
        taken = {"description": verb.help, "requestBody": body}
        paths[f"/api/{name}"] = {"post": described(name, verb.title, verb.result) | taken}
    state = "brain daemon model counts pending problems plugins spent_today_usd"
    paths["/api/status"] = {"get": described("status", "Status", state)}
    stream = {"200": {"description": "Events as they happen", "content": {"text/event-stream": {}}}}
    resuming = (("Last-Event-ID", "header"), ("after", "query"))
    names = [{"name": name, "in": place, "schema": {"type": "string"}} for name, place in resuming]
    paths["/api/events"] = {"get": described("events", "Events", "") | {"parameters": names, "responses": stream}}
    schemas = {name: verb.schema for name, verb in VERBS.items()}
    components = {"schemas": schemas, "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}}}
    about = {"openapi": "3.1.0", "info": {"title": "Brainiac", "version": __version__}}
    return about | {"paths": paths, "components": components, "security": [{"bearer": []}]}
