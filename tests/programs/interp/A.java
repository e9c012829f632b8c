// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;

/** A known tree of calls, for one of several purposes, until it is killed. */
public class A {
	static volatile long sink;

	interface Shape {
		long area(int n);
	}

	static class Sq implements Shape {
		public long area(int n) {
			long s = n;
			for (int i = 0; i < n; i++)
				s = s * 31 + i;
			return s;
		}
	}

	static class Tri implements Shape {
		public long area(int n) {
			long s = n;
			for (int i = 0; i < n; i++)
				s = s * 31 + i;
			return s;
		}
	}

	static class Circle implements Shape {
		public long area(int n) {
			long s = n;
			for (int i = 0; i < n; i++)
				s = s * 31 + i;
			return s;
		}
	}

	static final Shape SQ = new Sq(), TRI = new Tri(), CIRCLE = new Circle();

	static final long[] spent = new long[3]; // ns in SQ, TRI, CIRCLE
	static ThreadMXBean clock; // null: nobody wants to know

	static long now() {
		return clock == null ? 0 : clock.getCurrentThreadCpuTime();
	}

	static void mid(int n) {
		long begin = now();
		sink += SQ.area(7 * n);
		long afterSq = now();
		sink += TRI.area(2 * n);
		long afterTri = now();
		sink += CIRCLE.area(n);
		spent[0] += afterSq - begin;
		spent[1] += afterTri - afterSq;
		spent[2] += now() - afterTri;
	}

	static long said;

	static void say() {
		if (now() - said < 50000000)
			return;
		said = now();
		System.out.println("spent A$Sq.area " + spent[0] / 1000 + " A$Tri.area " + spent[1] / 1000
				+ " A$Circle.area " + spent[2] / 1000);
	}

	static void top(int n) {
		Arrays.asList(n, n).forEach(x -> mid(x));
	}

	static int down(int depth, int n) {
		if (depth == 0) {
			top(n);
			return 1;
		}
		return down(depth - 1, n) + 1;
	}

	static void sort(int n) {
		Integer[] all = new Integer[64];
		for (int i = 0; i < all.length; i++)
			all[i] = i * 7919 % 64;
		Arrays.sort(all, (a, b) -> {
			sink += SQ.area(n);
			return a - b;
		});
	}

	static void block(Object lock) throws Exception {
		synchronized (lock) {
			for (;;)
				lock.wait(10);
		}
	}

	static void enter(Object lock) {
		for (;;)
			synchronized (lock) {
				sink++;
			}
	}

	static void read() throws Exception {
		while (System.in.read() >= 0)
			sink++;
	}

	static void waits() throws Exception {
		final Object held = new Object();
		final Object never = new Object();
		Thread a = new Thread(() -> enter(held), "enter");
		Thread b = new Thread(() -> {
			try {
				block(never);
			} catch (Exception e) {
			}
		}, "block");
		Thread c = new Thread(() -> {
			try {
				read();
			} catch (Exception e) {
			}
		}, "read");
		for (Thread t : new Thread[] { a, b, c }) {
			t.setDaemon(true);
			t.start();
		}
		System.out.println("ready");
		for (;;)
			synchronized (held) {
				nap();
			}
	}

	static void nap() throws Exception {
		Thread.sleep(10);
	}

	static void virtual(int n) throws Exception {
		Thread t = (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class)
				.invoke(null, (Runnable) () -> {
					for (;;) {
						top(n);
						Thread.yield();
					}
				});
		System.out.println("ready");
		t.join();
	}

	public static void main(String[] args) throws Exception {
		int n = Integer.parseInt(args[1]);
		if (args[0].equals("waits"))
			waits();
		if (args[0].equals("virtual"))
			virtual(n);
		for (long round = 0;; round++) {
			if (args[0].equals("top"))
				// Rounds differ in length.
				top(n / 2 + (int) (round * 7919 % n)); // of main()
			else if (args[0].equals("down"))
				down(50, n);
			else if (args[0].equals("sort"))
				sort(n);
			if (round == 500) {
				if (args[0].equals("top"))
					clock = ManagementFactory.getThreadMXBean();
				Arrays.fill(spent, 0);
				System.out.println("ready");
			}
			if (clock != null)
				say();
		}
	}
}
