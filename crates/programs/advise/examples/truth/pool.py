"""A pool of threads of Python, which take turns by the interpreter's lock."""

import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

TEXT = b"What is compressed while the interpreter's lock is not held. " * 40
END = monotonic() + 1.0


def work(_):
    turns = 0
    while monotonic() < END:
        zlib.compress(TEXT)
        turns += 1
    return turns


threads = int(sys.argv[1])
with ThreadPoolExecutor(threads) as pool:
    print("rate", sum(pool.map(work, range(threads))))
