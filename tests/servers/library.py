"""A FastMCP server over standard input and output that offers a prompt, resources, a template and a skill."""

import logging

from fastmcp import FastMCP
from fastmcp.skills import Skill
from fastmcp.skills.provider import SkillCatalogProvider

lending = Skill(
    name="lending",
    description="Lends a book to a reader.",
    instructions="# Lending\n\nAsk which book, see `terms.md`, and call `lend`.\n",
    files={"terms.md": "Four weeks, and once more.\n", "forms/card.bin": bytes(range(256))},
)
server = FastMCP("library", providers=[SkillCatalogProvider([lending])])


@server.prompt
def review(title: str, tone: str = "friendly") -> str:
    """Asks for a review of a book."""
    return f"Write a {tone} review of {title}."


@server.resource("library://catalogue", mime_type="application/json")
def catalogue() -> dict:
    """All books."""
    return {"books": ["Emma", "Ulysses"]}


@server.resource("library://cover", mime_type="image/png")
def cover() -> bytes:
    """A picture."""
    return b"\x89PNG\r\n\x1a\n" + bytes(16)


@server.resource("library://books/{title}/{chapter*}")
def book(title: str, chapter: str) -> str:
    """A chapter of a book."""
    return f"{title}, {chapter}"


@server.tool
def lend(title: str) -> str:
    """Lends a book."""
    return title


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    server.run(show_banner=False)
