"""A small OpenID Connect provider of ours on loopback: it signs in whoever `claims` says, without asking."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT = "crag"


class IdentityProvider:
    """Discovery, authorization, token and key endpoints; codes are for one use."""

    def __init__(self) -> None:
        self.claims: dict[str, Any] = {}
        self.key = RSAKey.generate_key(2048, {"kid": "first", "use": "sig", "alg": "RS256"})
        self.signing_key = self.key
        self.nonces: dict[str, str] = {}
        self.server = _Server(("127.0.0.1", 0), _Handler)
        self.server.provider = self

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def document(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "code_challenge_methods_supported": ["S256"],
        }

    def grant(self, code: str) -> dict[str, Any]:
        """The reply to a code: an id_token about whoever `claims` names."""
        now = int(time.time())
        told = {"iss": self.url, "aud": CLIENT, "sub": "someone", "iat": now, "exp": now + 600}
        token = jwt.encode(
            {"alg": "RS256", "kid": "first"}, {**told, "nonce": self.nonces.pop(code), **self.claims}, self.signing_key
        )
        return {"access_token": "unused", "token_type": "Bearer", "expires_in": 600, "id_token": token}


@contextmanager
def serve_identity() -> Iterator[IdentityProvider]:
    """Run a provider in threads for the block."""
    provider = IdentityProvider()
    thread = threading.Thread(target=provider.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        provider.server.shutdown()
        provider.server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    provider: IdentityProvider


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        provider = self.server.provider
        address = urlsplit(self.path)
        match address.path:
            case "/.well-known/openid-configuration":
                self._json(provider.document())
            case "/keys":
                self._json({"keys": [provider.key.as_dict(private=False)]})
            case "/authorize":
                asked = {name: values[0] for name, values in parse_qs(address.query).items()}
                code = secrets.token_urlsafe(12)
                provider.nonces[code] = asked["nonce"]
                self.send_response(302)
                answer = urlencode({"code": code, "state": asked["state"]})
                self.send_header("Location", f"{asked['redirect_uri']}?{answer}")
                self.end_headers()
            case _:
                self.send_error(404)

    def do_POST(self) -> None:
        body = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self._json(self.server.provider.grant(body["code"][0]))

    def _json(self, value: Any) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
