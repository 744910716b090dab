// Right: its worker threads wait for a lock.
const { Worker, isMainThread, workerData } = require('worker_threads');
if (isMainThread) { const s = new SharedArrayBuffer(1024); const t=Date.now(); let d=0,n=0; for (let i=0;i<4;i++){ const w=new Worker(__filename,{workerData:s}); w.on('message',m=>{n+=m; if(++d==4) console.log('rate '+Math.round(n/((Date.now()-t)/1000))+' ops/s');}); } }
else { const { parentPort } = require('worker_threads'); const a=new Int32Array(workerData); let n=0; const e=Date.now()+2000; while(n%1000||Date.now()<e){ while(Atomics.compareExchange(a,0,0,1)!==0) Atomics.wait(a,0,1,1); a[1]++; Atomics.store(a,0,0); Atomics.notify(a,0,1); n++; } parentPort.postMessage(n); }
