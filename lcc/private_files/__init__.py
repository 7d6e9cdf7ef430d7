"""Opening, reading, writing and locking files without being blocked, misled or cut short: the one place for it.

Anybody may put a link, a pipe, a device or an endless file where one of ours is expected, and other lcc processes,
of other versions too, write in the same folders at the same time. So nothing but a regular file is opened, every
read has a limit, a file is written beside its place and renamed over it, no lock is waited for without an end, and
of a folder's content only what has a name of ours is ever removed.

Everything raises ``OSError``, also for a name that no file can have.
"""

from lcc.private_files.locks import HeldError, locked, take_lock
from lcc.private_files.reading import (
    AnyPath,
    ExposedFileError,
    ForeignFileError,
    NotRegularError,
    TooLargeError,
    open_regular,
    read_all,
    read_bounded,
    read_or_none,
)
from lcc.private_files.writing import (
    PRIVATE_FILE,
    PRIVATE_FOLDER,
    Beside,
    make_private_folder,
    remove_own,
    sync,
    sync_folder,
    write_all,
    write_private,
)

__all__ = [
    "PRIVATE_FILE",
    "PRIVATE_FOLDER",
    "AnyPath",
    "Beside",
    "ExposedFileError",
    "ForeignFileError",
    "HeldError",
    "NotRegularError",
    "TooLargeError",
    "locked",
    "make_private_folder",
    "open_regular",
    "read_all",
    "read_bounded",
    "read_or_none",
    "remove_own",
    "sync",
    "sync_folder",
    "take_lock",
    "write_all",
    "write_private",
]
