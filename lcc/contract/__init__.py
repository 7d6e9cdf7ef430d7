"""Values on the ground: options, decisions, reasons, notes and the report. Nothing here reads a file or decides."""
