"""Text that a page hides from people, and text that only looks so."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.documents.html import to_markdown

LONG = "The content of the page. " * 12


def main(inner: str) -> str:
    html = f"<html><body><main>{inner}</main></body></html>"
    return to_markdown(html, url="https://docs.example/").text


HIDDEN = [
    "display:none",
    "DISPLAY : none !important",
    "color:red;display:none",
    "display:/**/none",
    "visibility: hidden",
    "visibility:collapse",
    "font-size:0",
    "font-size: 0px !important",
    "font-size:.01em",
    "font-size:1%",
    "opacity:0",
    "opacity: 0.0",
    "opacity:.01",
    "opacity:0%",
    "position:absolute; left:-9999px",
    "position:absolute;top:-1000em",
    "position:fixed; right: -200%",
    "text-indent:-9999px",
    "text-indent:-100%",
    "margin-left:-10000px",
    "margin: 0 0 0 -9999px",
    "inset: -5000px auto auto",
    "transform:translateX(-9999px)",
    "transform: translate(0, -5000px)",
    "transform:scale(0)",
    "clip:rect(0,0,0,0)",
    "clip: rect(1px 1px 1px 1px)",
    "clip-path:inset(50%)",
    "clip-path:inset(0 100% 0 0)",
    "clip-path: circle(0)",
    "clip-path:polygon(0 0, 0 0, 0 0)",
    "width:1px;height:1px;overflow:hidden",
    "width:0;height:0;overflow:hidden",
    "font: 0/0 a",
    "font: italic 0px serif",
    "color:#fff;background:#FFF",
    "color:white; background-color: rgb(255, 255, 255)",
    "color:#ffffff;background: #fff none",
    "background:black;color:rgb(0 0 0)",
    "color:transparent",
    "color:rgba(0,0,0,0)",
    "color:#0000",
]


@pytest.mark.parametrize("style", HIDDEN)
@pytest.mark.parametrize("tag", ["p", "div", "section"])
def test_what_a_style_hides_is_no_content(style: str, tag: str) -> None:
    hidden = f'<{tag} style="{style}">no <b>not</b> <img alt="never"></{tag}>'
    assert main(f"<p>before</p>{hidden}<p>after</p>") == "before\n\nafter"
    assert main(f'<p>before<span style="{style}">no</span> after</p>') == "before after"


SHOWN = [
    "display:block",
    "visibility:visible",
    "font-size:12px",
    "font-size:.8em",
    "font-size:0.5rem",
    "font-size:80%",
    "font-size:calc(1px + 1em)",
    "opacity:1",
    "opacity:.5",
    "left:-20px",
    "text-indent:-2em",
    "margin:-10px",
    "top:50%;left:50%;transform:translate(-50%,-50%)",
    "transform:scale(0.5)",
    "clip:rect(0,100px,100px,0)",
    "clip:auto",
    "clip-path:inset(0)",
    "clip-path:circle(50%)",
    "clip-path:polygon(0 0,100% 0,100% 100%)",
    "width:0;height:0",
    "height:0;overflow:hidden",
    "width:100%;height:1px;overflow:hidden",
    "overflow:hidden",
    "color:#fff",
    "font: 10px/0 a",
    "font: inherit",
    "font: 700 1em/1.5 serif",
    "color:rgba(255,0,0)",
    "color:rgba(0,0,0,0.5)",
    "color:#fff;background:#000",
    "color:#fff;background:#fff url(x.png)",
    "color:#fff;background:linear-gradient(#fff,#000)",
    "color:#fff;background:var(--fff)",
    "color:inherit;background:inherit",
    "nonsense",
    ":;:;",
    "",
]


@pytest.mark.parametrize("style", SHOWN)
def test_what_a_style_shows_stays(style: str) -> None:
    assert main(f'<p>before</p><p style="{style}">shown</p>') == "before\n\nshown"


def test_an_inner_element_may_show_its_own_text_again() -> None:
    assert main('<div style="font-size:0">no<p style="font-size:16px">yes</p>no</div>') == "yes"
    assert main('<div style="visibility:hidden">no<p style="visibility:visible">yes</p></div>') == "yes"
    assert main('<div style="visibility:hidden"><p style="font-size:16px">no</p></div>x') == "x"
    assert main('<div style="opacity:0"><p style="opacity:1">no</p></div>x') == "x"


def test_code_that_is_not_seen_is_none() -> None:
    assert main('<div style="font-size:0"><pre>no</pre><dl><dt class="sig">no</dt></dl></div>x') == "x"


def test_a_text_in_the_colour_of_what_is_around_it_is_hidden() -> None:
    assert main('<div style="background:#fff">a <span style="color:white">no</span></div>') == "a"
    cell = '<table><tr><td bgcolor="#FFFFFF">a <font color="white">no</font></td></tr></table>'
    assert main(cell) == "| a |\n| --- |"
    dark = '<div style="background:#fff"><div class="dark"><p style="color:#fff">yes</p></div></div>'
    assert main(dark) == "yes"


@pytest.mark.parametrize(
    "html",
    [
        '<div style="display:none"><article><p>{0}</p></article></div><div><p>shown {1}</p></div>',
        "<main hidden><p>{0}</p></main><div><p>shown {1}</p></div>",
        '<div style="position:absolute;left:-9999px"><div id="content"><p>{0}</p></div></div><p>shown {1}</p>',
    ],
)
def test_what_is_hidden_is_not_taken_for_the_content(html: str) -> None:
    page = f"<body>{html.format('Obey. ' * 100, LONG)}</body>"
    text = to_markdown(page, url="https://docs.example/").text
    assert text == f"shown {LONG}".strip()


@pytest.mark.parametrize("style", ["opacity:0", "visibility:hidden", "display:none"])
def test_a_page_that_a_script_shows_is_read(style: str) -> None:
    page = f'<html style="{style}"><body style="{style}"><p>{LONG}</p></body></html>'
    assert to_markdown(page, url="https://docs.example/").text == LONG.strip()


_PARTS = st.sampled_from(
    [
        "color",
        "font",
        "clip",
        "opacity",
        ":",
        ";",
        "rect(",
        "rgb(",
        ")",
        "-",
        "1",
        "e999",
        "%",
        "#fff",
        "\\",
        "/*",
        " ",
        "9" * 400,
    ]
)


@given(st.lists(_PARTS, max_size=30).map("".join) | st.text(max_size=80))
def test_no_style_raises(style: str) -> None:
    quoted = style.replace("&", "&amp;").replace('"', "&quot;")
    assert isinstance(main(f'<p style="{quoted}">a</p>'), str)


@pytest.mark.parametrize(
    "filler", ["1", " ", "a", "a(", "rgb(", "/*", "\\", "-", ".", "#", "!", "1e", "1 ", "0 0 "]
)
@pytest.mark.parametrize("name", ["left:", "font:", "clip:", "color:red;background:", "transform:", ""])
def test_a_long_style_takes_no_time(name: str, filler: str) -> None:
    element = f'<b style="{name}{(filler * 2000)[:2000]}">a</b>'
    started = time.process_time()
    main(element * 200)
    assert time.process_time() - started < 1.0


def test_a_tag_whose_name_is_none_keeps_its_text() -> None:
    assert (
        "the text"
        in to_markdown("<html><body><a<a<a<a>the text</p></body></html>", url="https://docs.example/").text
    )
