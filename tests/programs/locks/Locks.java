// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/**
 * Threads that wait for locks and measure how long; one that waits for an answer; a pool that waits for work.
 * Locks MILLISECONDS: writes to stderr, as JSON, nanoseconds by the function that waited.
 */
public class Locks {
	static final Object monitor = new Object();
	static final ReentrantLock lock = new ReentrantLock();
	static final Semaphore semaphore = new Semaphore(1);
	static final ReentrantReadWriteLock rwlock = new ReentrantReadWriteLock();
	static final ExecutorService pool = Executors.newFixedThreadPool(2);
	static final AtomicLong inMonitor = new AtomicLong(), inLock = new AtomicLong();
	static final AtomicLong inSemaphore = new AtomicLong(), inRwlock = new AtomicLong(), inLatch = new AtomicLong();
	static volatile boolean over;

	interface Work {
		void run() throws Exception;
	}

	static void hold() throws Exception {
		Thread.sleep(8);
	}

	static void monitorWork() throws Exception {
		long since = System.nanoTime();
		synchronized (monitor) {
			inMonitor.addAndGet(System.nanoTime() - since);
			hold();
		}
	}

	static void lockWork() throws Exception {
		long since = System.nanoTime();
		lock.lock();
		inLock.addAndGet(System.nanoTime() - since);
		hold();
		lock.unlock();
	}

	static void semaphoreWork() throws Exception {
		long since = System.nanoTime();
		semaphore.acquire();
		inSemaphore.addAndGet(System.nanoTime() - since);
		hold();
		semaphore.release();
	}

	static void rwlockWork() throws Exception {
		long since = System.nanoTime();
		rwlock.writeLock().lock();
		inRwlock.addAndGet(System.nanoTime() - since);
		hold();
		rwlock.writeLock().unlock();
	}

	static void latchWork() throws Exception {
		CountDownLatch latch = new CountDownLatch(1);

		pool.execute(() -> {
			try {
				hold();
			} catch (Exception e) {
				throw new RuntimeException(e);
			}
			latch.countDown();
		});
		long since = System.nanoTime();
		latch.await();
		inLatch.addAndGet(System.nanoTime() - since);
	}

	static Thread start(Work work) {
		Thread thread = new Thread(() -> {
			try {
				while (!over) {
					work.run();
					Thread.sleep(2);
				}
			} catch (Exception e) {
				throw new RuntimeException(e);
			}
		});

		thread.start();
		return thread;
	}

	public static void main(String[] args) throws Exception {
		Thread[] threads = new Thread[13];

		for (int i = 0; i < 12; i += 4) {
			threads[i] = start(Locks::monitorWork);
			threads[i + 1] = start(Locks::lockWork);
			threads[i + 2] = start(Locks::semaphoreWork);
			threads[i + 3] = start(Locks::rwlockWork);
		}
		threads[12] = start(Locks::latchWork);
		Thread.sleep(Long.parseLong(args[0]));
		over = true;
		for (Thread thread : threads)
			thread.join();
		pool.shutdown();
		System.err.printf("{\"Locks.monitorWork\": %d, \"Locks.lockWork\": %d, \"Locks.semaphoreWork\": %d, "
			+ "\"Locks.rwlockWork\": %d, \"Locks.latchWork\": %d}%n",
			inMonitor.get(), inLock.get(), inSemaphore.get(), inRwlock.get(), inLatch.get());
	}
}
