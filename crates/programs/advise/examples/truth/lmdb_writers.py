"""So many threads write to one LMDB for a second: Python's lock, and LMDB's own."""

import shutil
import sys
import tempfile
import threading
import time

import lmdb

THREADS = int(sys.argv[1])
folder = tempfile.mkdtemp()
environment = lmdb.open(folder, map_size=1 << 28, sync=False, max_readers=64)
transactions = [0] * THREADS
over = False


def write(me):
    key = 0
    while not over:
        with environment.begin(write=True) as transaction:
            for _ in range(20):
                transaction.put(b"%d-%d" % (me, key % 5000), b"x" * 100)
                key += 1
        transactions[me] += 1


threads = [threading.Thread(target=write, args=(me,)) for me in range(THREADS)]
for thread in threads:
    thread.start()
time.sleep(1)
over = True
for thread in threads:
    thread.join()
print("rate %d" % sum(transactions))
environment.close()
shutil.rmtree(folder)
