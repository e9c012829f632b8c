// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// A service of the JDK's own server; prints its port.
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

class Service {
	static String render(int nr) {
		return IntStream.range(0, nr).mapToObj(row -> String.format("<li>%09d</li>", row))
			.collect(Collectors.joining());
	}

	static void answer(HttpExchange exchange) throws java.io.IOException {
		byte[] body = render(3000).getBytes();
		exchange.sendResponseHeaders(200, body.length);
		exchange.getResponseBody().write(body);
		exchange.close();
	}

	public static void main(String[] args) throws Exception {
		HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
		server.createContext("/", Service::answer);
		server.start();
		System.out.println(server.getAddress().getPort());
	}
}
