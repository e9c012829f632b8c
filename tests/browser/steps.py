# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a person does with the page of `stackbpf serve`, one function for each step; each leaves a screenshot."""


def share(part):
    """As the page, and the pictures, write shares."""
    percent = part * 100
    if 0 < percent < 0.005:
        return 'under 0.01%'
    if percent in (0, 100):
        return f'{percent:.0f}%'
    return f'{percent:.2f}%' if percent < 9.995 else f'{percent:.1f}%'


class Steps:
    def __init__(self, page, url, directory):
        self.page, self.url, self.directory, self.nr = page, url, directory, 0
        page.open('about:blank')
        page.prefer(prefers_color_scheme='light', prefers_reduced_motion='reduce')
        page.devtools('Emulation.setTimezoneOverride', timezoneId='UTC')
        page.console()

    def ready(self):
        self.page.wait("return document.documentElement.dataset.state === 'ready'")

    def look(self, name):
        self.nr += 1
        self.page.screenshot(f'{self.directory}/step-{self.nr}-{name}.png')

    def messages(self):
        return [entry['message'] for entry in self.page.console()]

    def texts(self, selector):
        return self.page.run("return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)", selector)

    def click(self, selector, text=None):
        self.ready()
        element = self.page.wait("""return [...document.querySelectorAll(arguments[0])]
            .find((one) => arguments[1] === null || one.textContent.trim() === arguments[1])""", selector, text)
        self.page.click(element)
        self.ready()

    def open(self, fragment=''):
        self.page.open('about:blank')
        self.page.open(self.url + '#' + fragment)
        self.ready()
        self.look('open')

    def split_by(self, key):
        """The timeline by a tag. Return: its values, heaviest first."""
        self.page.wait("return [...document.querySelectorAll('.by option')].some((one) => one.value === arguments[0])", key)
        self.page.run("""const by = document.querySelector('.by'); by.value = arguments[0];
                         by.dispatchEvent(new Event('change'))""", key)
        self.ready()
        self.look('by-' + key)
        return self.texts('.legend button')

    def pick(self, side, key, value, look=None):
        """
        A value of a tag in the picker of the first or second side, in place of what was chosen of that key; @look sees
        its values.
        """
        chip = self.page.run("""const chips = [...document.querySelectorAll('.side')[arguments[0]].querySelectorAll('.chip')];
            return chips.find((one) => one.textContent.startsWith(arguments[1] + '='))?.lastChild ?? null""", side, key)
        if chip:
            self.page.click(chip)
            self.ready()
        self.page.click(self.page.run("return document.querySelectorAll('.side')[arguments[0]].querySelector('.add-tag')", side))
        self.page.click(self.page.wait("""return [...document.querySelectorAll('.keys button')]
            .find((one) => one.textContent.startsWith(arguments[0] + ' '))""", key))
        if look:
            look()
        self.page.click(self.page.wait("""return [...document.querySelectorAll('.value')]
            .find((one) => one.querySelector('.name').textContent === arguments[0])?.querySelector('button')""", value))
        self.ready()

    def only(self, key, value):
        self.pick(0, key, value)
        self.look(f'only-{value}')

    def search(self, name):
        self.page.press('Escape', '/', *name)
        self.ready()
        self.look('search')
        return self.texts('#found')[0]

    def share_of(self, name):
        """Of self, in the table."""
        self.page.press('Escape', '/', *name)
        row = self.page.wait("""return [...document.querySelectorAll('.row')]
            .find((row) => row.querySelector('bdi').textContent === arguments[0])?.querySelector('small:not(bdi + small)')?.textContent""", name)
        self.look('function')
        self.page.press('Escape')
        return row

    def compare(self, key, a, b):
        """Two values of a tag over the same time."""
        self.click('#views button', 'Compare')
        for side, value in enumerate((a, b)):
            self.pick(side, key, value)
        self.click('.side-foot button', 'Whole')
        self.click('.side-foot button', 'Range of A')
        self.look('compare')

    def diff(self):
        """The cells of the row that became more by most: shares of others become less by that."""
        self.page.press('Escape')
        self.click('#views button', 'Diff')
        self.look('diff')
        return self.page.wait("""const row = [...document.querySelectorAll('.row')].find((one) =>
                [...one.querySelectorAll('.num')].some((cell) => cell.textContent.startsWith('+')));
            return row && [row.querySelector('bdi').textContent, ...[...row.querySelectorAll('.num')].map((one) => one.textContent)]""")

    def tip_of_time(self, at, begin, end):
        """What the timeline says about a time; all of it is from @begin to @end."""
        left, top, width, height = self.page.run("""const box = document.querySelector('.timeline').getBoundingClientRect();
            return [box.left, box.top, box.width, box.height]""")
        x = left + 52 + (at - begin + 5) / (end - begin) * (width - 58)
        self.page.call('POST', 'actions', {'actions': [{
            'type': 'pointer', 'id': 'mouse', 'parameters': {'pointerType': 'mouse'},
            'actions': [{'type': 'pointerMove', 'origin': 'viewport', 'duration': 0, 'x': round(x), 'y': round(top + height / 2)}]}]})
        return self.texts('#tip')[0]
