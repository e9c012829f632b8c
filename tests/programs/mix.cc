// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Containers, virtual functions, exceptions, until it is killed. Without frame pointers. */
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#define NOINLINE __attribute__((noinline))

static volatile unsigned long sink;

struct Node {
	virtual ~Node() = default;
	virtual long value(int depth) const = 0;
};

struct Leaf : Node {
	long value(int depth) const override
	{
		unsigned long x = static_cast<unsigned long>(depth);

		for (int i = 0; i < 400; i++)
			x = x * 6364136223846793005ul + 1;
		return static_cast<long>(x);
	}
};

struct Sum : Node {
	std::unique_ptr<Node> left, right;

	Sum(int depth)
	{
		if (depth <= 0) {
			left.reset(new Leaf);
			right.reset(new Leaf);
		} else {
			left.reset(new Sum(depth - 1));
			right.reset(new Leaf);
		}
	}
	long value(int depth) const override
	{
		return left->value(depth + 1) ^ right->value(depth + 1);
	}
};

static NOINLINE void sorted()
{
	std::vector<std::string> words;

	for (int i = 0; i < 200; i++)
		words.push_back(std::to_string(i * 7919 % 1000) + "a word that is not short");
	std::sort(words.begin(), words.end(), [](const auto &a, const auto &b) { return a < b; });
	sink = sink + words.front().size();
}

static NOINLINE void mapped()
{
	std::map<std::string, int> numbers;

	for (int i = 0; i < 100; i++)
		numbers[std::to_string(i * 31 % 97)] += i;
	std::function<void(const std::string &)> add = [&](const std::string &key) {
		sink = sink + static_cast<unsigned long>(numbers[key]);
	};
	for (const auto &[key, value] : numbers)
		add(key);
}

static NOINLINE void fail(int depth)
{
	std::string held(40, 'x');

	if (depth <= 0)
		throw std::runtime_error(held);
	fail(depth - 1);
	sink = sink + held.size();
}

static NOINLINE void thrown()
{
	try {
		fail(5);
	} catch (const std::exception &error) {
		sink = sink + std::string(error.what()).size();
	}
}

int main()
{
	Sum tree(8);

	for (;;) {
		for (int i = 0; i < 50; i++)
			sink = sink + static_cast<unsigned long>(tree.value(i));
		sorted();
		mapped();
		thrown();
	}
}
