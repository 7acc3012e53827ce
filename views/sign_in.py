"""Optional sign-in through OpenID Connect (`st.login`); only addresses on the allow-list come in."""

from __future__ import annotations

import streamlit as st

from config import get_settings
from views.markup import plain_markdown
from views.session import emphasis, words

EVERYBODY = "*"


def admitted() -> bool:
    """Tell whether this person may use the page; draw what to do when not.

    Without an allow-list (`CRAG_AUTH_ALLOW`) there is no sign-in and everybody who reaches the page is admitted; so
    with the entry `*`. Any other entry is an address, or a domain with an @ in front.
    """
    allowed = [entry.lower() for entry in get_settings().auth_allow]
    if not allowed or EVERYBODY in allowed:
        return True
    if not st.user.get("is_logged_in"):
        st.title(words("app_name"), anchor=False)
        st.button(words("sign_in"), icon=":material/login:", key="sign_in", type=emphasis(), on_click=st.login)
        return False
    email = str(st.user.get("email", "")).lower()
    verified = st.user.get("email_verified", True) is not False
    if verified and email and any(email == entry or (entry[0] == "@" and email.endswith(entry)) for entry in allowed):
        st.sidebar.button(words("sign_out"), icon=":material/logout:", key="sign_out", on_click=st.logout)
        return True
    st.error(words("not_allowed", email=plain_markdown(email)), icon=":material/block:")
    st.button(words("sign_out"), icon=":material/logout:", key="sign_out", on_click=st.logout)
    return False
