// Worker threads that share a lock of Atomics: V8 keeps its waiters under one mutex.
const { Worker, isMainThread, workerData, parentPort } = require('worker_threads');

const WORKERS = 4;
const SECONDS = 1;

if (isMainThread) {
  const shared = new SharedArrayBuffer(1024);
  const from = Date.now();
  let ended = 0;
  let turns = 0;
  for (let number = 0; number < WORKERS; number++) {
    new Worker(__filename, { workerData: shared }).on('message', (of) => {
      turns += of;
      ended++;
      if (ended === WORKERS) {
        console.log('rate ' + Math.round(turns / ((Date.now() - from) / 1000)));
      }
    });
  }
} else {
  const words = new Int32Array(workerData);
  const end = Date.now() + 1000 * SECONDS;
  let turns = 0;
  while (turns % 1000 || Date.now() < end) {
    while (Atomics.compareExchange(words, 0, 0, 1) !== 0) Atomics.wait(words, 0, 1, 1);
    words[1]++;
    Atomics.store(words, 0, 0);
    Atomics.notify(words, 0, 1);
    turns++;
  }
  parentPort.postMessage(turns);
}
