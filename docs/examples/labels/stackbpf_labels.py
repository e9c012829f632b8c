# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Labels of threads from Python: include/stackbpf-labels.h by way of ctypes.

    cc -shared -fPIC -o libstackbpf-labels.so -x c -DSB_LABELS_IMPLEMENTATION stackbpf-labels.h

    import stackbpf_labels
    labels = stackbpf_labels.Labels('./libstackbpf-labels.so')

    with labels(vehicle='car', region='eu-north'):
        work()

A label belongs to the thread that sets it. Code of asyncio that gives way to others in the block gives them the
label, too: set it where the work is done.
"""
import contextlib
import ctypes
import os
import threading


class Labels:
    def __init__(self, library):
        # PyDLL: with the lock of the interpreter, which a call of 20 ns need not give back.
        lib = ctypes.PyDLL(os.path.abspath(library))
        self._set = lib.sb_label_set
        self._set.argtypes = (ctypes.c_char_p, ctypes.c_char_p)
        self._set.restype = ctypes.c_int
        self._thread = threading.local()

    def set(self, key, value):
        """Set a label of this thread; None clears it."""
        err = self._set(key.encode(), None if value is None else str(value).encode())
        if err:
            raise OSError(-err, os.strerror(-err), key)
        self._now()[key] = value

    def _now(self):
        if not hasattr(self._thread, 'labels'):
            self._thread.labels = {}
        return self._thread.labels

    @contextlib.contextmanager
    def __call__(self, **labels):
        """For the block; what was set before comes back after it."""
        before = {key: self._now().get(key) for key in labels}
        for key, value in labels.items():
            self.set(key, value)
        try:
            yield
        finally:
            for key, value in before.items():
                self.set(key, value)
