// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
import java.util.Arrays;
import java.util.HashMap;

/** A bit of everything that a virtual machine does, until it is killed. */
public class Mix {
	static int fib(int n) {
		return n < 2 ? n : fib(n - 1) + fib(n - 2);
	}

	static int round() {
		HashMap<String, Integer> words = new HashMap<>();
		String[] text = new String[100];
		for (int i = 0; i < text.length; i++) {
			text[i] = i + "-" + i / 3.0;
			words.put(text[i], i);
		}
		Arrays.sort(text, (a, b) -> words.get(b) - words.get(a));
		return fib(18) + String.join(" ", text).replaceAll("([0-9]+)-([0-9])", "$2$1").hashCode();
	}

	public static void main(String[] args) {
		int sum = 0;
		for (int i = 0; ; i++) {
			sum += round();
			if (i == 2000)
				System.out.println("warm");
		}
	}
}
