"""The warm process: socket server, protocol, life cycle, followed sessions, `lcc-daemon`."""
