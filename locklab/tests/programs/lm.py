# Right: an answer, and no deadlock in the simulation: the GIL is a lock, and so is LMDB's.
import lmdb,threading,time,shutil
shutil.rmtree('SCRATCH',ignore_errors=True)
env=lmdb.open('SCRATCH',map_size=1<<28,sync=False,max_readers=64)
stop=False; c=[0]*4
def f(i):
    k=0
    while not stop:
        with env.begin(write=True) as t:
            for j in range(20): t.put(b'%d-%d'%(i,k%5000),b'x'*100); k+=1
        c[i]+=1
ts=[threading.Thread(target=f,args=(i,)) for i in range(4)]
[t.start() for t in ts]; time.sleep(3); stop=True; [t.join() for t in ts]; print('rate %.0f txn/s'%(sum(c)/3))
