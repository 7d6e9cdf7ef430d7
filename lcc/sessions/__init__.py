"""The session files of a project: listing them, following one, forking one."""
