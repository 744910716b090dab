import java.util.concurrent.locks.ReentrantLock;

/**
 * So many threads hold one monitor, or one ReentrantLock, for so many steps, and think for as
 * many: the rate is in steps under the lock.
 */
public class Sections {
    static final Object monitor = new Object();
    static final ReentrantLock lock = new ReentrantLock();
    static volatile boolean over;
    static volatile long sink;
    static long shared;
    static long turns;

    static long steps(long value, long count) {
        for (; count > 0; count--) {
            value = value * 6364136223846793005L + 1442695040888963407L;
        }
        return value;
    }

    static void turn(boolean synchronised, long hold) {
        if (synchronised) {
            synchronized (monitor) {
                shared = steps(shared, hold);
                turns++;
            }
        } else {
            lock.lock();
            try {
                shared = steps(shared, hold);
                turns++;
            } finally {
                lock.unlock();
            }
        }
    }

    public static void main(String[] words) throws Exception {
        boolean synchronised = words[0].equals("synchronized");
        Thread[] threads = new Thread[Integer.parseInt(words[1])];
        long hold = Long.parseLong(words[2]);
        for (int me = 0; me < threads.length; me++) {
            long first = me;
            threads[me] = new Thread(() -> {
                long own = first;
                while (!over) {
                    turn(synchronised, hold);
                    own = steps(own, hold);
                }
                sink = own;
            });
            threads[me].start();
        }
        Thread.sleep(1500);
        over = true;
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println("rate " + turns * hold);
    }
}
