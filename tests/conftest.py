"""Tests import the modules beside them (training.py), and their children hear Ctrl-C."""

import signal

# A shell starts what it runs in the background deaf to Ctrl-C, and children inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
