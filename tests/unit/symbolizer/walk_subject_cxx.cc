// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The C++ library: streams, containers, and exceptions with the unwinder that carries them. */
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "walk_subject.h"

struct Guard {
	int *count;
	~Guard() { ++*count; }
};

static __attribute__((noinline)) int thrower(int depth, int *count)
{
	Guard guard{ count };

	if (!depth)
		throw std::runtime_error("thrown");
	return thrower(depth - 1, count) + 1;
}

static __attribute__((noinline)) int catcher()
{
	int count = 0;

	try {
		thrower(6, &count);
	} catch (const std::exception &e) {
		count += static_cast<int>(std::string(e.what()).size());
	}
	try {
		try {
			thrower(2, &count);
		} catch (...) {
			throw;
		}
	} catch (const std::runtime_error &) {
		count++;
	}
	return count;
}

static __attribute__((noinline)) void streams()
{
	std::ostringstream out;
	double d;

	out << "text " << 42 << ' ' << std::setprecision(12) << 3.25e-9 << std::hex << 255 << true;
	std::istringstream in("3.5 word 17");
	std::string word;
	in >> d >> word;
	std::cout << std::setw(1) << "" << std::flush;
}

static __attribute__((noinline)) void containers()
{
	std::map<std::string, int> map;
	std::vector<std::string> words;
	int i;

	for (i = 0; i < 40; i++) {
		map[std::to_string(i * 7919 % 101)] = i;
		words.push_back(std::to_string(i * 31337 % 1009));
	}
	std::sort(words.begin(), words.end(),
		  [](const auto &a, const auto &b) { return a.size() < b.size() || a < b; });
	std::stable_sort(words.begin(), words.end());
	map.erase(map.begin());
}

int main()
{
	subject_begin();
	containers();
	streams();
	catcher();
	std::regex_match("abc123", std::regex("[a-z]+([0-9]+)"));
	catcher();
	subject_end();
	return 0;
}
