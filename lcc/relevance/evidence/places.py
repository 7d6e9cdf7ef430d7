"""One spelling for the many of a path: drive letters, slashes, upper and lower case, composed accents, WSL's mounts."""

from __future__ import annotations

import posixpath
import re
import unicodedata

_WSL_SHARE = re.compile(r"//wsl(?:\$|\.localhost)/[^/]+(?=/|\Z)")
_DRIVE = re.compile(r"(?:(?:/mnt|/cygdrive)?/([a-z])|([a-z]):)(?=/|\Z)")
_LINKED = re.compile(r"/private(?=/(?:tmp|var|etc)(?:/|\Z))")


def folded(text: str) -> str:
    """``text`` as all spellings of a path in it are compared."""
    text = text.replace("\\", "/")
    return (
        text.lower() if text.isascii() else unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    )


def place_of(path: str) -> str:
    """The one spelling of ``path``: with a slash ahead where it is whole. In doubt two files have the same."""
    text = folded(path)
    text = text.removeprefix("//?/").removeprefix("//./")
    text = _WSL_SHARE.sub("", text, count=1) if text.startswith("//") else text
    drive = _DRIVE.match(text)
    if drive:
        text = f"/{drive[1] or drive[2]}:{text[drive.end() :]}"
    linked = _LINKED.match(text)
    text = posixpath.normpath(text[linked.end() :] if linked else text)
    return text[1:] if text.startswith("//") else text
