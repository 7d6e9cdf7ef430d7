"""The commands of the `lcc` program, one module each; none is imported before it is asked for."""
