"""Prints docs/sample.html to Files/qinghe_k2_sample.pdf with Chromium and the Noto CJK fonts (OFL).

Run `python docs/make_sample.py [PATH OF CHROMIUM]`; needs the packages of requirements-dev.txt.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "Files" / "qinghe_k2_sample.pdf"
_SMALL = "font-size:8px; width:100%; margin:0 20mm; color:#666; font-family:'Noto Sans CJK SC',sans-serif;"


def make_sample(*, chromium: str | None) -> None:
    """Write the sample PDF; `chromium` is the browser to use instead of playwright's own."""
    import pikepdf
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.goto((ROOT / "docs" / "sample.html").as_uri())
        page.pdf(
            path=str(SAMPLE),
            prefer_css_page_size=True,
            display_header_footer=True,
            header_template=f'<div style="{_SMALL} text-align:right">青禾 K2 · Qinghe K2</div>',
            footer_template=f'<div style="{_SMALL} text-align:center">'
            '<span class="pageNumber"></span> / <span class="totalPages"></span></div>',
            outline=True,
            tagged=True,
        )
        browser.close()
    with pikepdf.open(SAMPLE, allow_overwriting_input=True) as pdf:  # half the size
        pdf.save(SAMPLE, object_stream_mode=pikepdf.ObjectStreamMode.generate, recompress_flate=True)


if __name__ == "__main__":
    make_sample(chromium=sys.argv[1] if len(sys.argv) > 1 else None)
