"""Sign-in with OpenID Connect, end to end in a browser against a provider of ours on loopback."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from joserfc.jwk import RSAKey
from playwright.sync_api import Browser, Page, expect

from tests.e2e.conftest import PATIENCE, Server, free_port, make_library, start_server, stop_server
from tests.e2e.helpers_identity import CLIENT, IdentityProvider, serve_identity


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with serve_identity() as running:
        yield running


@pytest.fixture(scope="module")
def guarded(provider: IdentityProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = make_library(tmp_path_factory.mktemp("guarded"))
    port = free_port()
    secrets = folder / "secrets.toml"
    secrets.write_text(
        f'[auth]\nredirect_uri = "http://127.0.0.1:{port}/oauth2callback"\n'
        f'cookie_secret = "a long secret of this test only"\nclient_id = "{CLIENT}"\nclient_secret = "unused"\n'
        f'server_metadata_url = "{provider.url}/.well-known/openid-configuration"\n',
        encoding="utf-8",
    )
    allowed = {"CRAG_AUTH_ALLOW": "ana@example.org, @team.example"}
    running = start_server(folder, port=port, options=("--secrets.files", str(secrets)), environment=allowed)
    yield running
    stop_server(running)


@pytest.fixture
def visitor(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(locale="en-US")
    context.set_default_timeout(PATIENCE)
    yield context.new_page()
    context.close()


def sign_in(page: Page, server: Server) -> None:
    page.goto(server.url)
    expect(page.get_by_test_id("stChatInputTextArea")).to_have_count(0)
    page.get_by_role("button", name="Sign in").click()


@pytest.mark.parametrize("email", ["ana@example.org", "Bo@Team.Example"])
def test_a_listed_person_comes_in_and_leaves(
    guarded: Server, provider: IdentityProvider, visitor: Page, email: str
) -> None:
    provider.claims = {"email": email, "email_verified": True}
    sign_in(visitor, guarded)
    expect(visitor.get_by_test_id("stChatInputTextArea")).to_be_visible()
    visitor.get_by_role("button", name="Sign out").click()
    expect(visitor.get_by_role("button", name="Sign in")).to_be_visible()
    expect(visitor.get_by_test_id("stChatInputTextArea")).to_have_count(0)


@pytest.mark.parametrize(
    "claims",
    [
        {"email": "eve@example.org", "email_verified": True},
        {"email": "ana@example.org", "email_verified": False},
        {},
    ],
)
def test_nobody_else_comes_in(
    guarded: Server, provider: IdentityProvider, visitor: Page, claims: dict[str, object]
) -> None:
    provider.claims = claims
    sign_in(visitor, guarded)
    expect(visitor.get_by_text("is not on the list")).to_be_visible()
    expect(visitor.get_by_test_id("stChatInputTextArea")).to_have_count(0)
    expect(visitor.get_by_role("button", name="Update")).to_have_count(0)


def test_a_token_signed_by_somebody_else_is_refused(guarded: Server, provider: IdentityProvider, visitor: Page) -> None:
    provider.claims = {"email": "ana@example.org", "email_verified": True}
    provider.signing_key = RSAKey.generate_key(2048, {"kid": "first", "use": "sig", "alg": "RS256"})
    try:
        sign_in(visitor, guarded)
        visitor.wait_for_load_state("networkidle")
        visitor.goto(guarded.url)
        expect(visitor.get_by_role("button", name="Sign in")).to_be_visible()
        expect(visitor.get_by_test_id("stChatInputTextArea")).to_have_count(0)
    finally:
        provider.signing_key = provider.key
