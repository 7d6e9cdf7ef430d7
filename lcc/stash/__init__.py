"""The stash: where lcc keeps the bytes of tool outputs that it removed from a session.

One folder per user (``$LCC_STASH_DIR``, else ``lcc/stash`` under the XDG data folder)::

    packs/<time>-<process>-<n>.pack   the objects of one put, each compressed and named by its sha256
    refs/<32 hex>                     which objects one session's notes name, appended to before a note is emitted
    lock                              shared by writers, exclusive while gc deletes

Who else writes there: every lcc process of the same user, at any time. Packs never change; they are
written beside their place, flushed to the disk and renamed, so that a name is either absent or whole.
Every read checks the sha256; a damaged object is reported and never returned. What a put costs does not
depend on how many objects there are; a look-up reads the index of every pack, 48 bytes an object.

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
    missing_objects,
    plan_collection,
)
from lcc.stash.objects import MAX_OBJECT_BYTES, DamagedObjectError, StashError, pack_files, pack_problem
from lcc.stash.references import UNNAMED_SESSION, References, all_references
from lcc.stash.store import (
    AmbiguousObjectError,
    Stash,
    Stored,
    StoredCopy,
    UnknownObjectError,
    bytes_of_text,
    text_of_bytes,
)

__all__ = [
    "MAX_OBJECT_BYTES",
    "UNNAMED_SESSION",
    "AmbiguousObjectError",
    "DamagedObjectError",
    "GcLimits",
    "GcPlan",
    "GcResult",
    "References",
    "Stash",
    "StashError",
    "StashFolderError",
    "Stored",
    "StoredCopy",
    "UnknownObjectError",
    "all_references",
    "bytes_of_text",
    "collect",
    "missing_objects",
    "pack_files",
    "pack_problem",
    "plan_collection",
    "stash_folder",
    "text_of_bytes",
]
