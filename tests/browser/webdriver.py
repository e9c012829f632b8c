# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""As much of WebDriver (w3.org/TR/webdriver2) as the tests need, with nothing but the standard
library, and headless Chromium behind it."""
import base64
import contextlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ELEMENT = 'element-6066-11e4-a52e-4f735466cecf'  # the key that the standard gives to elements
# Code points that the standard gives to keys.
KEYS = {'Control': '\ue009', 'Shift': '\ue008', 'Enter': '\ue007', 'Escape': '\ue00c',
        'ArrowUp': '\ue013', 'ArrowDown': '\ue015', 'ArrowLeft': '\ue012', 'ArrowRight': '\ue014',
        'PageUp': '\ue00e', 'PageDown': '\ue00f', 'Home': '\ue011', 'End': '\ue010'}
PRESS = ({'type': 'pointerDown', 'button': 0}, {'type': 'pointerUp', 'button': 0})
CHROMIUM_ARGS = ('--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
                 '--disable-background-networking', '--disable-component-update',
                 '--disable-sync', '--hide-scrollbars', '--force-device-scale-factor=1')
WAIT_SECONDS = 60  # for a condition that a working viewer meets at once, on a machine that is not busy


class Missing(Exception):
    """There is no browser here."""


class Browser:
    def __init__(self, width=1300, height=900):
        self.chromium = shutil.which('chromium') or shutil.which('chromium-browser')
        driver = shutil.which('chromedriver')
        if not self.chromium:
            raise Missing('no chromium (Debian: apt install chromium)')
        if not driver:
            raise Missing('no chromedriver (Debian: apt install chromium-driver)')
        self.profile = tempfile.mkdtemp(prefix='fg-browser-')
        self.driver = subprocess.Popen([driver, '--port=0'], stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True)
        self.session = None
        try:
            self.url = f'http://127.0.0.1:{self._port()}'
            # A proxy of the environment has no business between us and ourselves.
            self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            self._start(width, height)
        except BaseException:
            self.close()
            raise

    def _port(self):
        for line in self.driver.stdout:
            found = re.search(r'started successfully on port (\d+)', line)
            if found:
                return int(found.group(1))
        raise Missing('chromedriver does not start')

    def _start(self, width, height):
        args = [*CHROMIUM_ARGS, f'--user-data-dir={self.profile}', f'--window-size={width},{height}']
        options = {'binary': self.chromium, 'args': args}
        answer = self._call('POST', '/session', {'capabilities': {'alwaysMatch': {
            'browserName': 'chrome', 'goog:chromeOptions': options,
            'goog:loggingPrefs': {'browser': 'ALL'}}}})
        self.session = answer['sessionId']

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {'Content-Type': 'application/json'},
                                         method=method)
        try:
            with self.opener.open(request, timeout=240) as answer:
                return json.load(answer)['value']
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)['value']['message']) from None

    def call(self, method, path, body=None):
        return self._call(method, '/'.join(('/session', self.session, path)).rstrip('/'), body)

    def close(self):
        if self.session:
            self.call('DELETE', '')
        self.driver.terminate()
        self.driver.wait()
        self.driver.stdout.close()
        shutil.rmtree(self.profile, ignore_errors=True)

    # ---- what tests do ----

    def open(self, url):
        self.call('POST', 'url', {'url': url})

    def reload(self):
        self.call('POST', 'refresh', {})

    def run(self, script, *args):
        """The value of a JavaScript function body."""
        return self.call('POST', 'execute/sync', {'script': script, 'args': list(args)})

    def devtools(self, command, **params):
        return self.call('POST', 'goog/cdp/execute', {'cmd': command, 'params': params})

    def wait(self, script, *args):
        """Wait until the function body gives something true, and give it back."""
        end = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < end:
            value = self.run(script, *args)
            if value:
                return value
        raise AssertionError(f'never true: {script}')

    def press(self, *keys):
        """Press keys one after the other; 'Control+f' is a chord."""
        actions = []
        for key in keys:
            chord = key.split('+') if len(key) > 1 else [key]
            codes = [KEYS.get(part, part) for part in chord]
            actions += [{'type': 'keyDown', 'value': code} for code in codes]
            actions += [{'type': 'keyUp', 'value': code} for code in reversed(codes)]
        self.call('POST', 'actions', {'actions': [{'type': 'key', 'id': 'keys',
                                                    'actions': actions}]})

    def _move(self, element):
        """To the middle of what the window shows of it. The driver itself scrolls an SVG wrongly."""
        x, y = self.run("""
            const box = arguments[0].getBoundingClientRect();
            const middle = (a, b, max) => Math.floor((Math.max(a, 0) + Math.min(b, max)) / 2);
            return [middle(box.left, box.right, innerWidth), middle(box.top, box.bottom, innerHeight)];
            """, element)
        return {'type': 'pointerMove', 'origin': 'viewport', 'x': x, 'y': y, 'duration': 0}

    def _point(self, element, *after, kind='mouse'):
        self.call('POST', 'actions', {'actions': [{
            'type': 'pointer', 'id': kind, 'parameters': {'pointerType': kind},
            'actions': [self._move(element), *after]}]})

    def hover(self, element):
        self._point(element)

    def click(self, element):
        self._point(element, *PRESS)

    def tap(self, element):
        self._point(element, *PRESS, kind='touch')

    def control_click(self, element):
        down = {'type': 'keyDown', 'value': KEYS['Control']}
        up = {'type': 'keyUp', 'value': KEYS['Control']}
        pause = {'type': 'pause', 'duration': 0}
        self.call('POST', 'actions', {'actions': [
            {'type': 'key', 'id': 'keys', 'actions': [down, pause, pause, pause, up]},
            {'type': 'pointer', 'id': 'mouse', 'parameters': {'pointerType': 'mouse'},
             'actions': [pause, self._move(element), *PRESS, pause]}]})

    def console(self):
        """Messages since the last time; errors of scripts and of loading."""
        return [entry for entry in self.call('POST', 'se/log', {'type': 'browser'})
                if entry['level'] in ('SEVERE', 'WARNING')]

    def prefer(self, **features):
        self.devtools('Emulation.setEmulatedMedia', features=[
            {'name': name.replace('_', '-'), 'value': value} for name, value in features.items()])

    def screenshot(self, path):
        data = base64.b64decode(self.call('GET', 'screenshot'))
        with open(path, 'wb') as file:
            file.write(data)
        return data


@contextlib.contextmanager
def browser():
    """A browser for as long as the block; where there is none, the test is a skip."""
    try:
        started = Browser()
    except Missing as missing:
        print(f'skipped: {missing}')
        sys.exit(77)
    try:
        yield started
    finally:
        started.close()
