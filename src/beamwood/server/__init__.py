"""Models in, HTTP out: `beamwood serve`. Needs the extra: pip install '.[serve]'.

A request walks: worker.py (sockets) ─▶ connection.py (HTTP) ─▶ dispatch.py and routes.py (what for?) ─▶ access.py (may
it?) ─▶ handlers.py and schema.py (what is asked) ─▶ admission.py (is there room?) ─▶ answers.py (the model) ─▶ back.
Plain short searches take direct.py instead, from connection.py and back in one native call. registry.py holds the
models, warm.py asks them first, metrics.py counts, log.py writes, supervisor.py keeps the workers alive,
handover.py is what it gives them, reload.py and verify.py are how new files take the place of old ones, page/ is what
people see. transport.py is the other side: what a client's connections are.
"""
