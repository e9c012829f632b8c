# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""OTLP profiles by protoc: messages as dicts, and the tables that they point into."""
import collections
import pathlib
import re
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent


def is_there():
    return shutil.which('protoc') is not None


def parse_text(lines):
    """protoc's text format: {field: [values]}."""
    message = collections.defaultdict(list)
    for line in lines:
        line = line.strip()
        if line == '}':
            return message
        if line.endswith('{'):
            message[line[:-2]].append(parse_text(lines))
        elif line:
            key, _, value = line.partition(': ')
            message[key].append(unquote(value) if value.startswith('"') else int(value))
    return message


def unquote(text):
    escapes = {'n': b'\n', 't': b'\t', 'r': b'\r', '"': b'"', "'": b"'", '\\': b'\\'}
    out, at, text = b'', 0, text[1:-1]
    while at < len(text):
        if text[at] != '\\':
            out += text[at].encode()
            at += 1
        elif text[at + 1].isdigit():
            out += bytes([int(text[at + 1:at + 4], 8)])
            at += 4
        else:
            out += escapes[text[at + 1]]
            at += 2
    return out


def decode(body):
    done = subprocess.run(['protoc', f'-I{HERE}', '--decode', 'Request', 'profiles.proto'], input=body,
                          capture_output=True, check=False)
    if done.returncode:
        raise AssertionError(done.stderr.decode())
    text = done.stdout.decode()
    assert not re.search(r'^\s*\d+[:{ ]', text, re.M), 'protoc does not know all fields'
    return parse_text(iter(text.splitlines()))


def one(message, field, default=0):
    values = message.get(field, [default])
    assert len(values) == 1, (field, values)
    return values[0]


Frame = collections.namedtuple('Frame', 'name file line module kind')


class Dictionary:
    """Every index is checked on its way; entry 0 of each table is empty."""

    def __init__(self, message):
        self.message = message
        for table in 'mapping', 'location', 'function', 'link', 'attribute', 'stack':
            assert message[table + '_table'][0] == {}, f'entry 0 of the table of {table}s is not empty'
        assert message['string_table'][0] == b''
        for link in message['link_table'][1:]:
            assert (len(one(link, 'trace_id')), len(one(link, 'span_id'))) == (16, 8), link

    def at(self, table, index):
        values = self.message[table + '_table']
        assert 0 <= index < len(values), (table, index)
        return values[index]

    def string(self, index):
        return self.at('string', index).decode()

    def attribute(self, index):
        attribute = self.at('attribute', index)
        return self.string(one(attribute, 'key_strindex')), one(one(attribute, 'value'), 'string_value', b'').decode()

    def frame(self, index):
        """Its name, file, line, module, and kind of code."""
        location = self.at('location', index)
        line = one(location, 'lines')
        function = self.at('function', one(line, 'function_index'))
        name, file = self.string(one(function, 'name_strindex')), self.string(one(function, 'filename_strindex'))
        module = self.string(one(self.at('mapping', one(location, 'mapping_index')), 'filename_strindex'))
        kinds = dict(self.attribute(number) for number in location['attribute_indices'])
        assert kinds.keys() <= {'profile.frame.type'}, kinds
        return Frame(name, file, one(line, 'line'), module, kinds.get('profile.frame.type'))

    def stack(self, index):
        return [self.frame(number) for number in reversed(self.at('stack', index)['location_indices'])]

    def type(self, message):
        return self.string(one(message, 'type_strindex')), self.string(one(message, 'unit_strindex'))


def links(body):
    """{(trace ID, span ID) in hexadecimal, or None: value}"""
    message = decode(body)
    dictionary = Dictionary(one(message, 'dictionary'))
    profile = one(one(one(message, 'resource_profiles'), 'scope_profiles'), 'profiles')
    sums = collections.Counter()
    for sample in profile['samples']:
        link = dictionary.at('link', one(sample, 'link_index'))
        sums[link and tuple(bytes(one(link, field)).hex() for field in ('trace_id', 'span_id')) or None] += one(sample, 'values')
    return dict(sums)


def read_file(body):
    """A file of one profile: {stack of frames, root first: value}, types of values, period, facts, the profile."""
    message = decode(body)
    dictionary = Dictionary(one(message, 'dictionary'))
    profile = one(one(one(message, 'resource_profiles'), 'scope_profiles'), 'profiles')
    sums = collections.Counter()
    for sample in profile['samples']:
        sums[tuple(dictionary.stack(one(sample, 'stack_index')))] += one(sample, 'values')
    types = [dictionary.type(profile[field][0]) for field in ('sample_type', 'period_type') if field in profile]
    facts = dict(dictionary.attribute(number) for number in profile['attribute_indices'])
    return dict(sums), types, one(profile, 'period'), facts, profile
