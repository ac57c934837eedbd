"""The page of `regard inspect` as an app: a sentence in, what the model did with it out, block by block.

It answers to this machine's own names only, so that no page of another site can reach it, and sends a policy under
which the page can load nothing from anywhere else. FastAPI's own pages, which load from outside, are off.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.middleware.trustedhost import TrustedHostMiddleware

from regard.errors import ConfigError, RegardError
from regard.inspect.html import built, shell
from regard.inspect.packing import blocks_of, page_data
from regard.inspect.record import Inspectable, Inspection, reads_pairs

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HOSTS = ["127.0.0.1", "localhost"]
MOST_BODY = 100_000
"""Bytes of a request."""
MOST_TEXTS, MOST_CHARACTERS = 8, 10_000
KEPT = 16
"""Inspections that are held; of an older one the page asks again."""
WAITING = 8
"""Requests that may wait for the model."""


@dataclass(slots=True)
class Shelf:
    """The latest inspections by name."""

    held: OrderedDict[str, Inspection] = field(default_factory=OrderedDict[str, Inspection])

    def add(self, inspection: Inspection) -> str:
        name = secrets.token_hex(8)
        self.held[name] = inspection
        while len(self.held) > KEPT:
            self.held.popitem(last=False)
        return name


def inspection_app(model: Inspectable, *, title: str = "", options: dict[str, Any] | None = None) -> FastAPI:
    """`options` are those of the model's search."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=HOSTS)
    shelf, turn, waiting = Shelf(), asyncio.Semaphore(1), Waiting()

    @app.middleware("http")
    async def guarded(request: Request, call_next: Any) -> Response:  # pyright: ignore[reportUnusedFunction]
        response = await call_next(request)
        response.headers["Content-Security-Policy"] = POLICY
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["Cache-Control"] = "no-store"
        return response

    @app.exception_handler(RegardError)
    async def refused(_: Request, error: RegardError) -> Response:  # pyright: ignore[reportUnusedFunction]
        return JSONResponse({"error": str(error)}, status_code=422)

    @app.get("/")
    async def front() -> Response:  # pyright: ignore[reportUnusedFunction]
        return HTMLResponse(shell(title, pairs=reads_pairs(model)))

    @app.get("/page.js")
    async def script() -> Response:  # pyright: ignore[reportUnusedFunction]
        return Response(built("page.js"), media_type="text/javascript; charset=utf-8")

    @app.get("/page.css")
    async def style() -> Response:  # pyright: ignore[reportUnusedFunction]
        return Response(built("page.css"), media_type="text/css; charset=utf-8")

    @app.post("/api/inspections")
    async def inspect(request: Request) -> Response:  # pyright: ignore[reportUnusedFunction]
        texts, target = asked(await body(request))
        if waiting.count >= WAITING:
            return JSONResponse({"error": "the model is busy; try again in a moment"}, status_code=503)
        with waiting:
            async with turn:  # one at a time: they share the cores
                found = await run_in_threadpool(
                    lambda: [model.inspect_line(text, target, **(options or {})) for text in texts]
                )
        return JSONResponse(page_data(found, [shelf.add(each) for each in found]))

    @app.get("/api/inspections/{name}/{block:path}")
    async def part(name: str, block: str) -> Response:  # pyright: ignore[reportUnusedFunction]
        blocks = dict(blocks_of(shelf.held[name])) if name in shelf.held else {}
        if block not in blocks:
            return JSONResponse({"error": "there is no such block"}, status_code=404)
        return Response(blocks[block](), media_type="application/octet-stream")

    return app


@dataclass(slots=True)
class Waiting:
    """Counts those inside."""

    count: int = 0

    def __enter__(self) -> None:
        self.count += 1

    def __exit__(self, *_: object) -> None:
        self.count -= 1


async def body(request: Request) -> Any:
    """The JSON of a request; ConfigError for one that is none, or too large to be read."""
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise ConfigError("a request is JSON: its content-type should be application/json")
    read = b""
    async for chunk in request.stream():
        read += chunk
        if len(read) > MOST_BODY:
            raise ConfigError(f"the request has more than {MOST_BODY:,} bytes; shorten the text")
    try:
        return json.loads(read)
    except (ValueError, RecursionError):
        raise ConfigError("the request is not JSON") from None


def asked(value: Any) -> tuple[list[str], str | None]:
    """The texts to inspect, and the output, if it is given."""
    texts = value.get("texts") if isinstance(value, dict) else None
    target = value.get("target") if isinstance(value, dict) else None
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise ConfigError('a request has "texts", a list of strings')
    if target is not None and not isinstance(target, str):
        raise ConfigError('"target" is a string, or left out')
    if len(texts) > MOST_TEXTS:
        raise ConfigError(f"{len(texts)} texts are too many to be looked at side by side; give at most {MOST_TEXTS}")
    longest = max(map(len, [*texts, target or ""]))
    if longest > MOST_CHARACTERS:
        raise ConfigError(f"a text has {longest:,} characters; give at most {MOST_CHARACTERS:,}")
    return texts, target


def listening(port: int) -> socket.socket:
    """A socket of this machine's own; ConfigError where the port is taken."""
    own = socket.socket()
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        own.bind(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        own.close()
        raise ConfigError(f"--port {port} cannot be used ({error}); choose another, or 0 for any free one") from None
    return own


def serve(model: Inspectable, own: socket.socket, *, title: str, options: dict[str, Any]) -> None:
    """On a socket, until it is interrupted."""
    config = uvicorn.Config(
        inspection_app(model, title=title, options=options), log_level="warning", limit_concurrency=64
    )
    uvicorn.Server(config).run([own])
