"""Streamlit's own words and spacing: in the session's language, and fit for a small screen."""

from __future__ import annotations

import json

import streamlit as st

from config import get_settings
from views.session import language, words

TAGS = {"zh": "zh-CN", "en": "en"}
OWN_WORDS = {
    "Upload": "upload_choose",
    "Add files": "upload_choose",
    "Drag and drop files here": "upload_drop",
    "Send message": "send",
    "Stop script": "stop_answer",
    "Close": "close",
    "Fullscreen": "fullscreen",
    "Close fullscreen": "fullscreen_close",
    "Main menu": "main_menu",
    "System": "menu_system",
    "Light": "menu_light",
    "Dark": "menu_dark",
    "Print": "menu_print",
    "Record screen": "menu_record",
    "Expand sidebar": "sidebar_open",
    "Collapse sidebar": "sidebar_close",
    "Sidebar": "sidebar",
    "Skip to main content": "skip",
    "Copy to clipboard": "copy",
    "Show password text": "password_show",
    "Hide password text": "password_hide",
    "Increment": "increment",
    "Decrement": "decrement",
    "Clear value": "clear",
    "Clear all": "clear",
    "Clear entry": "clear",
    "No results": "no_results",
    "Select all": "select_all",
    "Open": "open_list",
    "Feedback rating": "feedback",
    "Press Enter to apply": "press_enter",
    "Press Enter to submit form": "press_enter",
    "Download as CSV": "table_csv",
    "Search": "table_search",
    "Show/hide columns": "table_columns",
    "Scroll tabs left": "tabs_left",
    "Scroll tabs right": "tabs_right",
    "Running...": "running",
    "Stop": "stop_build",
}
"""Streamlit's English text or label: the key of ours."""

AREAS = (
    "[data-testid=stFileUploader], [data-testid=stMainMenuPopover], [data-testid=stMainMenuList], [role=tooltip], "
    "[data-testid=stStatusWidget], [data-testid=InputInstructions], [data-testid=stTooltipContent], "
    "[data-testid=stSelectboxVirtualDropdown]"
)
"""Where Streamlit writes text of its own; labels for screen readers are translated wherever they are."""

STYLE = """
<style>
[class*=st-key-turn_] { scroll-margin-top: 4.5rem; }
[data-testid=stMarkdownContainer] table { max-width: 100%; }
[data-testid=stMarkdownContainer] :is(td, th) { overflow-wrap: anywhere; font-size: 0.82rem; padding: 0.25rem 0.35rem; }
[data-testid=stSliderTickBar] { color: inherit !important; transition: none !important; }
@media (max-width: 480px) {
  .st-key-view button { padding-inline: 0.7rem; }
  .st-key-view button [data-testid=stIconMaterial],
  .st-key-view button :has([data-testid=stIconMaterial]):not(:has(p)) { display: none; }
  .st-key-welcome h1 { font-size: 2rem; }
}
</style>
"""

# Streamlit keeps what it wrote in React's memory and sets it again only when it changes, so replacing text is safe.
SCRIPT = """
<script>
(() => {
  document.documentElement.lang = %(tag)s;
  const words = %(words)s, limit = %(limit)s, help = %(help)s, areas = %(areas)s;
  const kept = (window.cragKept ??= new WeakMap());
  const translate = (holder, slot, now, put) => {
    const slots = kept.get(holder) ?? {};
    const original = slots[slot]?.shown === now ? slots[slot].original : now;
    const key = (original ?? "").trim();
    const shown = Object.hasOwn(words, key) ? words[key]
      : / per file$/.test(key) ? limit
      : key.startsWith("Help for ") ? help + key.slice(9) : original;
    if (shown !== original || slots[slot]) { slots[slot] = { original, shown }; kept.set(holder, slots); }
    if (shown !== now) put(shown);
  };
  const pass = () => {
    for (const name of ["aria-label", "title"])
      for (const element of document.querySelectorAll(`[${name}]`))
        translate(element, name, element.getAttribute(name), (text) => element.setAttribute(name, text));
    for (const area of document.querySelectorAll(areas)) {
      const walker = document.createTreeWalker(area, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        const node = walker.currentNode;
        translate(node, "text", node.nodeValue, (text) => { node.nodeValue = text; });
      }
    }
  };
  let waiting = 0;
  window.cragObserver?.disconnect();
  window.cragObserver = new MutationObserver(() => {
    waiting ||= setTimeout(() => { waiting = 0; pass(); }, 100);
  });
  window.cragObserver.observe(document.body, {
    subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: ["aria-label", "title"],
  });
  pass();
})();
</script>
"""


def draw_chrome() -> None:
    """Tell the browser the page's language, its words for Streamlit's own, and the rules for small screens."""
    st.html(STYLE)
    limit = words("upload_limit", limit=get_settings().max_upload_mb)
    values = {
        "tag": TAGS[language()],
        "words": {text: words(key) for text, key in OWN_WORDS.items()},
        "limit": limit,
        "help": words("help_for"),
        "areas": AREAS,
    }
    script = SCRIPT % {name: json.dumps(value, ensure_ascii=False) for name, value in values.items()}
    st.html(script, unsafe_allow_javascript=True)


def show_from_its_start(turn_id: str) -> None:
    """Scroll to a turn's question: Streamlit would leave a long answer at its end."""
    st.html(
        f"<script>for (const wait of [0, 200, 600]) setTimeout(() => document.querySelector('.st-key-turn_{turn_id}')"
        "?.scrollIntoView({ block: 'start' }), wait);</script>",
        unsafe_allow_javascript=True,
    )
