// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// java Leaks NR [PIECE]: as leaks.c. Pieces are arrays of PIECE bytes.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;

class Leaks {
	static int piece = 1000;
	static ArrayList<byte[]> kept = new ArrayList<>();
	static long[] account = new long[8];

	static void count(int of, int size)
	{
		account[2 * of] += size;
		account[2 * of + 1]++;
	}

	static void keep(int of, int nr)
	{
		int size = piece * (1 + nr % 3);
		kept.add(new byte[size]);
		count(of, size);
	}

	static void layer1(int of, int nr)
	{
		keep(of, nr);
	}

	static void layer2(int of, int nr)
	{
		layer1(of, nr);
	}

	static void much(int nr)
	{
		layer2(0, nr);
	}

	static void some(int nr)
	{
		layer2(1, nr);
	}

	static void little(int nr)
	{
		layer2(2, nr);
	}

	static int churn()
	{
		byte[][] pieces = new byte[10][];

		for (int i = 0; i < 10; i++) {
			pieces[i] = new byte[2 * piece];
			count(3, 2 * piece);
		}
		return pieces[9].length;
	}

	static void work(int nr)
	{
		for (int i = 0; i < nr; i++)
			for (int k = 0; k < 10; k++) {
				if (k < 6)
					much(i);
				else if (k < 9)
					some(i);
				else
					little(i);
				churn();
			}
	}

	public static void main(String[] args) throws Exception
	{
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
		int nr = Integer.parseInt(args[0]);

		if (args.length > 1)
			piece = Integer.parseInt(args[1]);
		System.out.println("ready");
		while (in.readLine() != null) {
			work(nr);
			StringBuilder line = new StringBuilder();
			for (long number : account)
				line.append(number).append(' ');
			System.out.println(line);
		}
	}
}
