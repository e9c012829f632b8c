# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Says where its interpreter has what leads to its frames, and then is in C for ever, where none of that
is looked at: others may write there what they like. scribbled.py NAME runs|waits"""
import ctypes
import itertools
import json
import os
import sys

CODE_BYTES, FRAME_BYTES, STATE_BYTES = 192, 80, 192


def regions():
    found = [[ctypes.cast(ctypes.pythonapi.PyThreadState_Get(), ctypes.c_void_p).value, STATE_BYTES]]
    frame = sys._getframe(1)
    while frame:
        # Of PyFrameObject, from 3.11 on: f_frame.
        found.append([ctypes.c_uint64.from_address(id(frame) + 24).value, FRAME_BYTES])
        found.append([id(frame.f_code) + 16, CODE_BYTES - 16])
        for thing in (frame.f_code.co_qualname, frame.f_code.co_filename, frame.f_code.co_linetable):
            found.append([id(thing) + 16, 48])
        frame = frame.f_back
    return found


def leaf(depth):
    if depth:
        return leaf(depth - 1)
    print(json.dumps(regions()), flush=True)
    return sum(itertools.repeat(0)) if sys.argv[2] == 'runs' else os.read(os.pipe()[0], 1)


def main():
    with open('/proc/self/comm', 'w', encoding='ascii') as comm:
        comm.write(sys.argv[1])
    ctypes.pythonapi.PyThreadState_Get.restype = ctypes.c_void_p
    leaf(4)


main()
