// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// A bit of everything, see rounds.c.
import java.io.FileInputStream;
import java.io.FileOutputStream;

public class Rounds {
	static final int CHUNK = 40000;
	static final byte[] buffer = new byte[131072];
	static int sink;

	static void spin(int nr) {
		for (int i = 0; i < nr; i++)
			sink += sink ^ i;
	}

	static void seventy() {
		spin(7 * CHUNK);
	}

	static void twenty() {
		spin(2 * CHUNK);
	}

	static void ten() {
		spin(CHUNK);
	}

	static void nap() throws Exception {
		Thread.sleep(20);
	}

	static void fetch(String path) throws Exception {
		try (FileInputStream file = new FileInputStream(path)) {
			while (file.read(buffer) > 0)
				;
		}
	}

	static void store(String path) throws Exception {
		try (FileOutputStream file = new FileOutputStream(path)) {
			file.write(buffer, 0, 4096);
		}
	}

	static void tell() throws Exception {
		System.out.write("round\n".getBytes());
		System.out.flush();
	}

	static void round_of(String in, String out) throws Exception {
		seventy();
		twenty();
		ten();
		nap();
		fetch(in);
		store(out);
		tell();
	}

	public static void main(String[] args) throws Exception {
		for (;;)
			round_of(args[0], args[1]);
	}
}
