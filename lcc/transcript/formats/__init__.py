"""The formats of transcripts, a module or a folder each."""
