"""One module for each command of a hook: ``answer(request, call, services)``, called in a worker thread."""
