"""The stash: where lcc keeps the bytes of tool outputs that it removed from a session.

One folder per user (``$LCC_STASH_DIR``, else ``lcc/stash`` under the XDG data folder)::

    objects/ab/<62 hex>   one object: a header and the zlib-compressed bytes, named by their sha256
    refs/<32 hex>         which objects one session's notes name, appended to before a note is emitted
    lock                  shared by writers, exclusive while gc deletes

Who else writes there: every lcc process of the same user, at any time. Objects never change; they are
written beside their place, flushed to the disk and renamed, so that a name is either absent or whole.
Every read checks the sha256; a damaged object is reported and never returned.

The errors::

    StashError            what a caller can tell the user as it is
      UnknownObjectError       no such id
      AmbiguousObjectError     the id fits more than one object
      DamagedObjectError       the bytes on disk are not the ones that were stored
    StashFolderError      (an OSError) the folder cannot be used safely; the text says what to do
"""

from lcc.stash.folder import StashFolderError, stash_folder
from lcc.stash.gc import (
    GcLimits,
    GcPlan,
    GcResult,
    collect,
    default_session_folders,
    missing_objects,
    plan_collection,
)
from lcc.stash.objects import MAX_OBJECT_BYTES, DamagedObjectError, StashError
from lcc.stash.references import UNNAMED_SESSION, References, all_references
from lcc.stash.store import (
    AmbiguousObjectError,
    Entry,
    Stash,
    Stored,
    UnknownObjectError,
    bytes_of_text,
    text_of_bytes,
)

__all__ = [
    "MAX_OBJECT_BYTES",
    "UNNAMED_SESSION",
    "AmbiguousObjectError",
    "DamagedObjectError",
    "Entry",
    "GcLimits",
    "GcPlan",
    "GcResult",
    "References",
    "Stash",
    "StashError",
    "StashFolderError",
    "Stored",
    "UnknownObjectError",
    "all_references",
    "bytes_of_text",
    "collect",
    "default_session_folders",
    "missing_objects",
    "plan_collection",
    "stash_folder",
    "text_of_bytes",
]
