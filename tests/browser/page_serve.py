#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""page_serve.py STACKBPF STORE_TEXT DIR: the page before `stackbpf serve` itself, and a store whose contents are
known: from the services to the slow function of one region, as Pyroscope's article about ride sharing goes. A
screenshot of each step goes to DIR."""
import pathlib
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'serve'))
from serving import Server, Store  # noqa: E402
from steps import Steps, share  # noqa: E402
from webdriver import browser  # noqa: E402

NR_BLOCKS, BLOCK_S = 60, 10
REGIONS, VEHICLES = ('ap-south', 'eu-north', 'us-east'), {'bike': 20, 'scooter': 30, 'car': 50}
SLOW = ('main', 'order_car', 'check_driver_availability', 'mutex_lock')
STACKBPF = STORE_TEXT = DIR = BROWSER = None


def fill(store, begin):
    """The slow region's cars wait for a lock; half way, nothing is recorded for a minute."""
    lines = []
    for block in (*range(NR_BLOCKS // 2), *range(NR_BLOCKS // 2 + 6, NR_BLOCKS)):
        for region in REGIONS:
            for vehicle, weight in VEHICLES.items():
                tags = {'host': 'shop-1', 'service': 'ride', 'region': region, 'vehicle': vehicle, 'PID': block % 3}
                find = ('main', f'order_{vehicle}', 'find_nearest_vehicle')
                for stack, part in ((find, weight), ((*find, 'haversine'), weight // 2 + block % 3)):
                    lines.append((begin + block * BLOCK_S, 'oncpu', 'samples', tags, part, stack))
                if region == 'ap-south' and vehicle == 'car':
                    lines.append((begin + block * BLOCK_S, 'oncpu', 'samples', tags, 90, SLOW))
        lines.append((begin + block * BLOCK_S, 'offcpu', 'us', {'host': 'shop-1', 'service': 'ride'}, 4_000_000, ('main', 'accept')))
    store.add(lines)


class PageOfServe(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix='page-serve-')
        self.addCleanup(scratch.cleanup)
        self.store = Store(STORE_TEXT, scratch.name)
        # No whole 10 minutes of the clock: of these there are sums, without wide tags, in another file.
        self.begin = int(time.time()) // 600 * 600 - 1200 + 60
        fill(self.store, self.begin)
        # As it is started without options: the browser has what is printed.
        self.server = Server(STACKBPF, '--store', scratch.name, asks=True)
        self.addCleanup(self.server.end)
        self.steps = Steps(BROWSER, f'http://{self.server.host}:{self.server.port}/?token={self.server.token}', DIR)

    def part(self, leaf, **tags):
        sums = self.store.sums(0, 1 << 40, holds=lambda of: all(of.get(key) == value for key, value in tags.items()))
        return sum(weight for stack, weight in sums.items() if stack[-1] == leaf) / sum(sums.values())

    def test_ride_sharing(self):
        steps = self.steps
        end = self.begin + NR_BLOCKS * BLOCK_S
        steps.open(f'from={self.begin}&to={end}')
        # The token has become a cookie that no script can read, and stands in no address that somebody copies.
        self.assertEqual(BROWSER.run("return [location.search, document.cookie]"), ['', ''])
        self.assertEqual(steps.texts('#kinds button'), ['offcpu', 'oncpu'])
        self.assertEqual(steps.split_by('service'), ['ride'])
        self.assertEqual(steps.split_by('vehicle'), ['car', 'scooter', 'bike'])
        # The slow region is the heaviest.
        self.assertEqual(steps.split_by('region'), ['ap-south', 'eu-north', 'us-east'])
        steps.only('vehicle', 'car')
        self.assertEqual(steps.texts('.chip'), ['vehicle=car\u00d7'])
        self.assertEqual(steps.share_of('mutex_lock'), share(self.part('mutex_lock', vehicle='car')))
        steps.compare('region', 'us-east', 'ap-south')
        self.assertEqual(steps.search('mutex_lock'),
                         f'1 frame, A 0%, B {share(self.part("mutex_lock", vehicle="car", region="ap-south"))}')
        name, a, b, change, z = steps.diff()
        self.assertEqual((name, a, b), ('mutex_lock', '0%', share(self.part('mutex_lock', vehicle='car', region='ap-south'))))
        self.assertTrue(change.startswith('+') and float(z) > 10, (change, z))
        self.assertEqual(steps.messages(), [])

    def test_facts(self):
        """What was lost and cut, a gap, an error, a file."""
        steps = self.steps
        end = self.begin + NR_BLOCKS * BLOCK_S
        steps.open(f'from={self.begin}&to={end}')
        nr = sum(line[1] == 'oncpu' for line in self.store.lines)
        self.assertIn(f'{nr:,} lost', ' '.join(steps.texts('.pane .warn')))
        self.assertIn('nothing was recorded', steps.tip_of_time(self.begin + (NR_BLOCKS // 2 + 3) * BLOCK_S, self.begin, end))
        steps.pick(0, 'PID', '2', lambda: self.assertIn('older aggregates do not have this tag', steps.texts('.values')[0]))
        self.assertEqual(steps.texts('.chip'), ['PID=2\u00d7'])
        want = sum(line[4] for line in self.store.lines if line[1] == 'oncpu' and line[3].get('PID') == 2)
        self.assertIn(f'{want:,} samples', steps.texts('.pane-head strong')[0])
        steps.open('from=yesterday')
        steps.page.wait("return document.querySelector('.message').textContent.includes('is not a valid time')")
        steps.open(f'from={self.begin}&to={end}&norm=rate&v=diff&vs_from={self.begin}&vs_to={end}')
        self.assertEqual(len(steps.texts('.pane .message:not([hidden])')), 0)
        messages = [text for text in steps.messages() if '400' not in text]
        self.assertEqual(messages, [])

    def test_held(self):
        """Memory is shown as bytes that were held, whatever the length of a step."""
        end = self.begin + NR_BLOCKS * BLOCK_S
        self.store.add([(self.begin + block * BLOCK_S, 'memory', 'byte-seconds', {'host': 'shop-1', 'service': 'ride'},
                         BLOCK_S * 3 << 30, ('main', 'keep')) for block in range(NR_BLOCKS)])
        self.steps.open(f'kind=memory&from={self.begin}&to={end}')
        self.assertEqual(self.steps.texts('.pane-head strong'), ['1.76 TiB\u00b7s'])
        self.assertRegex(self.steps.tip_of_time(self.begin + 300, self.begin, end), r'3 GiB, \d+ GiB\u00b7s')
        self.assertEqual(self.steps.messages(), [])

    def test_damage(self):
        """A store whose middle is overwritten says so beside what it still has."""
        files = [path for path in pathlib.Path(self.store.path).rglob('*') if path.is_file()]
        path = max(files, key=lambda path: path.stat().st_size)
        with open(path, 'r+b') as file:
            file.seek(path.stat().st_size // 2)
            file.write(b'\xa5' * 64)
        end = self.begin + NR_BLOCKS * BLOCK_S
        for view in ('single', 'diff'):
            self.steps.open(f'v={view}&from={self.begin}&to={end}&vs_from={self.begin}&vs_to={end}')
            self.assertRegex(' '.join(self.steps.texts('.pane .warn')), 'bytes unreadable|KiB unreadable')
            self.assertEqual(self.steps.texts('.pane .message:not([hidden])'), [])


def main():
    global BROWSER, STACKBPF, STORE_TEXT, DIR
    STACKBPF, STORE_TEXT, DIR = (sys.argv.pop(1) for _ in range(3))
    with browser() as BROWSER:
        unittest.main()


if __name__ == '__main__':
    main()
