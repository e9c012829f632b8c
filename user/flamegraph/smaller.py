# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The same JavaScript and CSS in fewer bytes.

JavaScript: comments and what nobody needs of space go; ends of lines stay where a statement may end. What is declared
in the text gets a short name, one for each name wherever it stands, so that whatever a name refers to in its place
stays what it was; names of properties stay. Of the language, this knows what our pages are written in, and refuses
the rest. tests/unit/flamegraph/smaller.js compares what was meant with what came of it, by the grammar.
"""
import collections
import itertools
import re

KEYWORDS = set('''async await break case catch class const continue debugger default delete do else enum export extends
false finally for function if import in instanceof let new null of return static super switch this throw true try typeof
var void while with yield get set arguments eval undefined'''.split())
# They stand before an expression, so that a slash after them begins a regular one.
BEFORE_VALUE = set('return typeof case in of delete void throw new else do await instanceof'.split())
REFUSED = set('class get set static with yield super export import debugger eval do arguments'.split())
TOKEN = re.compile(r'''
    (?P<space>(?:[ \t\r\n]|//[^\n]*|/\*[\s\S]*?\*/)+)
  | (?P<string>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")
  | (?P<name>[A-Za-z_$][\w$]*)
  | (?P<number>0x[0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
  | (?P<mark>\.\.\.|=>|\?\.|\?\?=|\?\?|&&=|\|\|=|&&|\|\||\+\+|--|\*\*=|\*\*|===|!==|==|!=|>>>=|>>>|<<=|>>=|<<|>>|<=|>=
      |[-+*/%&|^]=|[{}()\[\];,<>+\-*/%&|^!~?:=.])
''', re.X)
REGEX = re.compile(r'/(?![*/])(?:[^\\/\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*')
BRACKETS = {')': '(', ']': '[', '}': '{'}


class Refused(Exception):
    pass


class Token:
    def __init__(self, kind, text, after_line):
        self.kind, self.text = kind, text
        self.after_line = after_line  # a line ended before it
        self.opens = None             # of a '{': 'block', 'object'
        self.is_key = self.is_short = False
        self.mate = None              # the other bracket: where it is in the list

    def is_mark(self, *texts):
        return self.kind == 'mark' and self.text in texts

    def is_word(self, *texts):
        return self.kind == 'name' and self.text in texts


def begins_value(before):
    """Whether what comes after the token @before is a value, not an operator."""
    if before is None:
        return True
    if before.kind == 'mark':
        return before.text not in (')', ']', '}', '++', '--')
    return before.kind == 'name' and before.text in BEFORE_VALUE


def tokens_of(text):
    tokens, at, after_line = [], 0, False
    while at < len(text):
        before = tokens[-1] if tokens else None
        found = TOKEN.match(text, at)
        if text[at] == '/' and not (found and found['space']):
            if before is not None and before.is_mark('}'):
                raise Refused('a slash after "}"')
            if begins_value(before):
                found = REGEX.match(text, at)
                if not found:
                    raise Refused(f'no end of a regular expression: {text[at:at + 40]!r}')
                tokens.append(Token('regex', found[0], after_line))
                at, after_line = found.end(), False
                continue
        if not found:
            raise Refused(f'not known: {text[at:at + 40]!r}')
        at = found.end()
        if found.lastgroup == 'space':
            after_line = after_line or '\n' in found[0]
            continue
        tokens.append(Token(found.lastgroup, found[0], after_line))
        after_line = False
    return tokens


def kind_of_brace(tokens, i):
    before = tokens[i - 1] if i else None
    if before is None or before.is_mark(')', '=>', ';', '{', '}') or before.is_word('else', 'try', 'finally', 'catch'):
        return 'block'
    if before.is_mark(':'):
        while i and not tokens[i - 1].is_mark(';', '{', '}'):
            i -= 1
        if tokens[i].is_word('case', 'default'):
            raise Refused('the block of a case')
        return 'object'
    if before.is_mark('(', ',', '=', '[', '?', '||', '&&', '??') or \
            before.is_word('const', 'let', 'return', 'of', 'in'):
        return 'object'
    raise Refused(f'"{{" after {before.text!r}')


def match_brackets(tokens):
    open_ones = []
    for i, token in enumerate(tokens):
        if token.is_mark('(', '[', '{'):
            if token.text == '{':
                token.opens = kind_of_brace(tokens, i)
            open_ones.append(i)
        elif token.is_mark(')', ']', '}'):
            if not open_ones or tokens[open_ones[-1]].text != BRACKETS[token.text]:
                raise Refused(f'{token.text!r} closes nothing')
            token.mate = open_ones.pop()
            tokens[token.mate].mate = i
    if open_ones:
        raise Refused('a bracket stays open')


def mark_keys(tokens):
    """Names that are of a property: behind a dot, and keys of objects."""
    inside = []
    for i, token in enumerate(tokens):
        before, after = tokens[i - 1] if i else None, tokens[i + 1] if i + 1 < len(tokens) else None
        if token.is_mark('(', '[', '{'):
            inside.append(token.opens)
        elif token.is_mark(')', ']', '}'):
            inside.pop()
        if token.kind != 'name':
            continue
        if before is not None and before.is_mark('.', '?.'):
            token.is_key = True
        elif inside and inside[-1] == 'object' and before.is_mark('{', ','):
            token.is_key = after.is_mark(':')
            token.is_short = after.is_mark(',', '}', '=')
            if not token.is_key and not token.is_short:
                raise Refused(f'a method: {token.text!r}')
        if not token.is_key and token.text in REFUSED:
            raise Refused(token.text)


def bind(tokens, at, end, names):
    """What the pattern at @at declares goes to @names. Return: where it ends."""
    token = tokens[at]
    if token.kind == 'name':
        if token.text in KEYWORDS:
            raise Refused(f'{token.text!r} as a name')
        names.add(token.text)
        return at + 1
    if token.is_mark('...'):
        return bind(tokens, at + 1, end, names)
    if not token.is_mark('[', '{'):
        raise Refused(f'a name was due, not {token.text!r}')
    is_object = token.text == '{'
    bind_list(tokens, at + 1, token.mate, names, is_object)
    return token.mate + 1


def skip_value(tokens, at, end):
    """Past a default or an initial value: up to the comma, the semicolon, or @end."""
    while at < end and not tokens[at].is_mark(',', ';'):
        at = tokens[at].mate + 1 if tokens[at].is_mark('(', '[', '{') else at + 1
    return at


def bind_list(tokens, at, end, names, is_object=False):
    while at < end:
        if tokens[at].is_mark(','):
            at += 1
            continue
        if is_object and tokens[at].is_key:
            at += 2
        at = bind(tokens, at, end, names)
        if at < end and tokens[at].is_mark('='):
            at = skip_value(tokens, at + 1, end)
        if at < end and not tokens[at].is_mark(','):
            raise Refused(f'a list of names goes on with {tokens[at].text!r}')


def bind_declaration(tokens, at, names):
    """const, let, var: @at is behind it."""
    while True:
        at = bind(tokens, at, len(tokens), names)
        if tokens[at].is_mark('='):
            at = skip_value(tokens, at + 1, len(tokens))
        if not tokens[at].is_mark(','):
            break
        at += 1
    if not tokens[at].is_mark(';') and not tokens[at].is_word('of', 'in'):
        raise Refused(f'a declaration goes on with {tokens[at].text!r}')


def declared(tokens):
    names = set()
    for i, token in enumerate(tokens):
        if token.is_key:
            continue
        if token.is_word('const', 'let', 'var'):
            bind_declaration(tokens, i + 1, names)
        elif token.is_word('function'):
            i += 1
            if tokens[i].kind == 'name':
                i = bind(tokens, i, len(tokens), names)
            bind_list(tokens, i + 1, tokens[i].mate, names)
        elif token.is_word('catch') and tokens[i + 1].is_mark('('):
            bind_list(tokens, i + 2, tokens[i + 1].mate, names)
        elif token.is_mark('=>'):
            if tokens[i - 1].is_mark(')'):
                bind_list(tokens, tokens[i - 1].mate + 1, i - 1, names)
            else:
                bind(tokens, i - 1, i, names)
    return names


def short_names():
    first = 'etnrisoaclduhpmfgybvkwxjqzETNRISOACLDUHPMFGYBVKWXJQZ_$'
    for nr in itertools.count(1):
        for letters in itertools.product(first, *[first + '0123456789'] * (nr - 1)):
            yield ''.join(letters)


def rename(tokens):
    names = declared(tokens)
    uses, shorts, others = collections.Counter(), collections.Counter(), set(KEYWORDS)
    for token in tokens:
        if token.kind != 'name' or token.is_key:
            continue
        if token.text in names:
            uses[token.text] += 1
            shorts[token.text] += token.is_short
        else:
            others.add(token.text)
    to, free = {}, (name for name in short_names() if name not in others and name not in names)
    short = next(free)
    for name, nr in sorted(uses.items(), key=lambda use: (-use[1], use[0])):
        # The key of `{ name }` has to be said then.
        if nr * (len(name) - len(short)) > shorts[name] * (len(name) + 1):
            to[name] = short
            short = next(free)
    for token in tokens:
        if token.kind == 'name' and not token.is_key and token.text in to:
            token.text = f'{token.text}:{to[token.text]}' if token.is_short else to[token.text]


# A statement cannot end behind the first, nor begin with the second.
GOES_ON = set('{ ; , ( [ = => ? : && || ?? + - * / % & | ^ < > <= >= == != === !== ! ~ += -= *= /= . ?.'.split())
CONTINUES = set(') ] } , ; . ? : && || =>'.split())
# Two that would be another one, a comment, or the end of the element or section that the text is put in.
NOT_TOGETHER = re.compile(r'[\w$][\w$]|\+\+|--|/[/*]|<[!/]|->|\]>')


def needs_line(before, token):
    return token.after_line and not (before.kind == 'mark' and before.text in GOES_ON) and \
        not (token.kind == 'mark' and token.text in CONTINUES)


def needs_space(before, token):
    return NOT_TOGETHER.match(before.text[-1] + token.text[0]) or before.kind == 'number' and token.text[0] == '.'


def javascript(text):
    tokens = tokens_of(text)
    match_brackets(tokens)
    mark_keys(tokens)
    rename(tokens)
    out = []
    for before, token in zip([None] + tokens, tokens):
        if before is not None and needs_line(before, token):
            out.append('\n')
        elif before is not None and needs_space(before, token):
            out.append(' ')
        out.append(token.text)
    return ''.join(out) + '\n'


CSS_TOKEN = re.compile(r'''(/\*[\s\S]*?\*/|\s)+|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[{};,>:]|[^\s{};,>:"'/]+|/''')


def css(text):
    """Spaces go where they are of no meaning: not before ":", which may follow one in a selector."""
    out = []
    for found in CSS_TOKEN.finditer(text):
        token = found[0]
        if found[1] is not None:
            token = ' ' if out and out[-1][-1] not in '{};,>: \n' else ''
        elif token in '{};,>' and out and out[-1] == ' ':
            out.pop()
        if token == '}' and out and out[-1] == ';':
            out.pop()
        if token:
            out.append('}\n' if token == '}' else token)
    return ''.join(out)
