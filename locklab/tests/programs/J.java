// A monitor is held over a sleep now and then, which a flight recording keeps.
// Right: Java's own locks are seen with --system, and named as not seen without.
import java.util.concurrent.locks.*;
public class J { static long n; static volatile boolean stop; static final Object o=new Object(); static final ReentrantLock l=new ReentrantLock(); static volatile int sink;
 static void w(int k){int x=0; for(int i=0;i<k;i++){x+=i*x+1;} sink=x;}
 static void p(long ms){try{Thread.sleep(ms);}catch(InterruptedException e){}}
 public static void main(String[] a) throws Exception { Thread[] t=new Thread[4]; long[] c=new long[4]; 
  for(int i=0;i<4;i++){final int k=i; t[i]=new Thread(()->{ while(!stop){ if(a[0].equals("sync")){synchronized(o){n++; w(300); if(n%1000==0) p(20);}} else {l.lock(); try{n++; w(300);}finally{l.unlock();}} w(300); c[k]++; }}); t[i].start();}
  Thread.sleep(3000); stop=true; long s=0; for(int i=0;i<4;i++){t[i].join(); s+=c[i];} System.out.println("rate "+(s/3)+" ops/s"); } }
