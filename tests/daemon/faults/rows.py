"""All rows of the fault table."""

from __future__ import annotations

from daemon.faults import inputs, places, processes
from daemon.faults.row import Row

ROWS: tuple[Row, ...] = tuple(
    row
    for table in (
        *(processes.DAEMON, processes.SOCKET, processes.ANSWER, processes.LOCK),
        *(places.DISK, places.FOLDER, places.LIMIT, places.PLUGIN, places.HOME),
        *(inputs.CONFIGURATION, inputs.EVENT, inputs.FILES, inputs.JUDGE),
    )
    for row in table.rows
)
