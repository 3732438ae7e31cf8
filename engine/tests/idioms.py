"""Small modules as people write them: how they fill, change, register and set what a definition needs.

Each has the code of a module, the definition to copy, what to ask of it, and the module's answer. The answer
is None where no copy can give it, because it is about the module itself.
"""

from typing import NamedTuple


class Idiom(NamedTuple):
    code: str
    copy: str
    ask: str
    answer: object


IDIOMS = {
    "constant": Idiom("X = 3\ndef f(): return X", "f", "f()", 3),
    "loop fills": Idiom(
        "T = {}\nfor i in range(3):\n    T[i] = i * i\ndef f(): return T",
        "f",
        "f()[2]",
        4,
    ),
    "method fills": Idiom("T = []\nT.append(4)\ndef f(): return T", "f", "f()", [4]),
    "alias fills": Idiom(
        "T = {}\nalso = T\nalso['x'] = 4\ndef f(): return T", "f", "f()", {"x": 4}
    ),
    "alias by a function": Idiom(
        "T = {}\ndef table(): return T\ntable()['x'] = 7\ndef f(): return T['x']",
        *("f", "f()", 7),
    ),
    "function fills": Idiom(
        "T = {}\ndef put(t, k): t[k] = 4\ndef fill(t): put(t, 2)\nfill(T)\ndef f(): return T",
        *("f", "f()", {2: 4}),
    ),
    "comprehension fills": Idiom(
        "T = []\nfilled = [T.append(n) for n in (1, 2)]\ndef f(): return T",
        *("f", "f()", [1, 2]),
    ),
    "value taken from a table": Idiom(
        "T = [0, 1, 4]\nlast = T.pop()\ndef f(): return T", "f", "f()", [0, 1]
    ),
    "operator fills": Idiom(
        "import operator\nT = []\noperator.iadd(T, [1])\ndef f(): return T",
        "f",
        "f()",
        [1],
    ),
    "context manager fills": Idiom(
        "from contextlib import ExitStack\nT = []\n"
        "with ExitStack() as stack:\n    stack.callback(T.append, 1)\ndef f(): return T",
        *("f", "f()", [1]),
    ),
    "unpacked beside": Idiom(
        "T = {}\nT[2], other = 4, 5\ndef f(): return T", "f", "f()", {2: 4}
    ),
    "sliced": Idiom(
        "L = [3, 1]\nM = L\nM[:] = sorted(M)\ndef f(): return L", "f", "f()", [1, 3]
    ),
    "decorator registers": Idiom(
        "R = {}\ndef keep(f):\n    R[f.__name__] = f\n    return f\n@keep\ndef two(): return 2\n"
        "def f(): return R['two']()",
        *("f", "f()", 2),
    ),
    "decorator with state": Idiom(
        "class Registry(dict):\n    def __call__(self, f):\n        self[f.__name__] = f\n        return f\n"
        "registry = Registry()\n@registry\ndef two(): return 2\ndef f(): return [*registry]",
        *("f", "f()", ["two"]),
    ),
    "singledispatch": Idiom(
        "from functools import singledispatch\n@singledispatch\ndef f(x): return 'other'\n"
        "@f.register\ndef _(x: int): return 'int'",
        *("f", "f(1)", "int"),
    ),
    "subclass registers": Idiom(
        "class Layer:\n    kinds = {}\n    def __init_subclass__(cls): Layer.kinds[cls.__name__] = cls\n"
        "class Dense(Layer): size = 3\ndef f(): return Layer.kinds['Dense'].size",
        *("f", "f()", 3),
    ),
    "metaclass registers": Idiom(
        "SEEN = []\nclass Meta(type):\n    def __init__(cls, *a): SEEN.append(cls.__name__)\n"
        "class A(metaclass=Meta): ...\ndef f(): return SEEN",
        *("f", "f()", ["A"]),
    ),
    "descriptor registers": Idiom(
        "SEEN = []\nclass Field:\n    def __set_name__(self, owner, name): SEEN.append(name)\n"
        "class A: x = Field()\ndef f(): return SEEN",
        *("f", "f()", ["x"]),
    ),
    "subclasses asked for": Idiom(
        "class A: ...\nclass B(A): ...\ndef f(): return [c.__name__ for c in A.__subclasses__()]",
        *("f", "f()", ["B"]),
    ),
    "attributes in a loop": Idiom(
        "class A: ...\nfor n in (1, 2): setattr(A, f'_m{n}', n)\ndef f(n): return getattr(A, f'_m{n}')",
        *("f", "f(2)", 2),
    ),
    "method replaced": Idiom(
        "class A:\n    def m(self): return 1\nclass B(A): ...\nA.m = lambda self: 2\ndef f(): return B().m()",
        *("f", "f()", 2),
    ),
    "function's attribute": Idiom("def f(): return f.n\nf.n = 9", "f", "f()", 9),
    "defaults replaced": Idiom(
        "def f(x=1): return x\ndef g(): return f()\nf.__defaults__ = (5,)",
        "g",
        "g()",
        5,
    ),
    "earlier value": Idiom(
        "x = 1\nA = x\nx = 2\ndef f(): return A, x", "f", "f()", (1, 2)
    ),
    "earlier value in a default": Idiom(
        "x = 1\ndef last(y=x): return y\nx = 2\nA = last()\ndef f(): return A",
        "f",
        "f()",
        1,
    ),
    "name over a builtin": Idiom(
        "A = min(1, 2)\ndef min(*n): return n\ndef f(): return A, min(3)",
        "f",
        "f()",
        (1, (3,)),
    ),
    "global set by a function": Idiom(
        "def start():\n    global T\n    T = 4\nstart()\ndef f(): return T",
        "f",
        "f()",
        4,
    ),
    "counted by a decorator": Idiom(
        "N = 0\ndef counted(f):\n    global N\n    N += 1\n    return f\n@counted\ndef a(): ...\n"
        "@counted\ndef b(): ...\ndef f(): return N",
        *("f", "f()", 2),
    ),
    "numbers taken in order": Idiom(
        "class Ids:\n    n = 0\n    def take(self):\n        self.n += 1\n        return self.n\n"
        "ids = Ids()\nPAD = ids.take()\nEND = ids.take()\ndef f(): return END",
        *("f", "f()", 2),
    ),
    "random numbers in order": Idiom(
        "import random\nrandom.seed(3)\nA = random.random()\nB = random.random()\ndef f(): return B",
        *("f", "f()", 0.5442292252959519),
    ),
    "generator begun": Idiom(
        "def numbers():\n    n = 0\n    while True:\n        yield n\n        n += 1\n"
        "G = numbers()\nfirst = next(G)\ndef f(): return next(G)",
        *("f", "f()", 1),
    ),
    "closure changed": Idiom(
        "def make():\n    n = 0\n    def bump():\n        nonlocal n\n        n += 1\n        return n\n"
        "    return bump\nbump = make()\none = bump()\ndef f(): return bump()",
        *("f", "f()", 2),
    ),
    "cache filled": Idiom(
        "from functools import lru_cache\nN = []\n@lru_cache\ndef g(x):\n    N.append(x)\n    return len(N)\n"
        "A = g(7)\ndef f(): return g(8)",
        *("f", "f()", 2),
    ),
    "text that is run": Idiom(
        "for n in ('two', 'three'):\n    exec(f'def {n}(): return {len(n)}')\n"
        "def f(): return two() + three()",
        *("f", "f()", 8),
    ),
    "globals": Idiom("globals()['X'] = 4\ndef f(): return X", "f", "f()", 4),
    "module's own attribute": Idiom(
        "import sys\nHERE = sys.modules[__name__]\nsetattr(HERE, 'LIMIT', 5)\ndef f(): return HERE.LIMIT",
        *("f", "f()", 5),
    ),
    "builtin added": Idiom(
        "import builtins\nbuiltins.limit = 3\ndef f(): return limit", "f", "f()", 3
    ),
    "name deleted": Idiom(
        "X = 1\nY = X\ndel X\ndef f(): return Y",
        "f",
        "(f(), 'X' in globals())",
        (1, False),
    ),
    "another name if there is none": Idiom(
        "try:\n    unicode\nexcept NameError:\n    unicode = str\ndef f(): return unicode(3)",
        "f",
        "f()",
        "3",
    ),
    "setting of a package": Idiom(
        "import decimal\ndecimal.getcontext().prec = 2\ndef f(): return str(decimal.Decimal(1) / 3)",
        *("f", "f()", "0.33"),
    ),
    "setting by a function": Idiom(
        "import sys\nsys.setrecursionlimit(1234)\ndef f(): return sys.getrecursionlimit()",
        *("f", "f()", 1234),
    ),
    "environment": Idiom(
        "import os\nos.environ['PKG_MODE'] = 'fast'\ndef f(): return os.environ['PKG_MODE']",
        *("f", "f()", "fast"),
    ),
    "registered in a package": Idiom(
        "from abc import ABC\nclass A(ABC): ...\nclass B: ...\nA.register(B)\n"
        "def f(): return issubclass(B, A)",
        *("f", "f()", True),
    ),
    "pickled by a function": Idiom(
        "import copyreg\nclass Meta(type): ...\ncopyreg.pickle(Meta, lambda c: (str, ()))\n"
        "def f(): return Meta in copyreg.dispatch_table",
        *("f", "f()", True),
    ),
    "setting of a package imported again": Idiom(
        "import math\nmath.half = 0.5\ndef f():\n    import math\n    return math.half",
        *("f", "f()", 0.5),
    ),
    "context variable": Idiom(
        "from contextvars import ContextVar\nV = ContextVar('v', default=1)\nT = V.set(3)\n"
        "def f(): return V.get()",
        *("f", "f()", 3),
    ),
    "weak references": Idiom(
        "from weakref import WeakValueDictionary\nW = WeakValueDictionary()\nclass A: ...\n"
        "def keep(a):\n    W['a'] = a\n    return a\nheld = keep(A())\ndef f(): return [*W]",
        *("f", "f()", ["a"]),
    ),
    "what a thread holds": Idiom(
        "import threading\nL = threading.local()\ndef put(x):\n    L.x = x\n    return x\n"
        "one = put(4)\ndef f(): return L.x",
        *("f", "f()", 4),
    ),
    "logger": Idiom(
        "import logging\nlog = logging.getLogger(__name__)\nlog.setLevel(10)\ndef f(): return log.level",
        *("f", "f()", 10),
    ),
    "enumeration": Idiom(
        "from enum import Enum, auto\nclass K(Enum):\n    A = auto()\n    B = auto()\n"
        "D = K.B\ndef f(): return D.value",
        *("f", "f()", 2),
    ),
    "dataclass": Idiom(
        "from dataclasses import dataclass, field\nLIMIT = 3\n@dataclass(frozen=True)\nclass C:\n"
        "    x: int = LIMIT\n    y: list = field(default_factory=list)\ndef f(): return C()",
        *("f", "(f().x, f().y)", (3, [])),
    ),
    "class's module": Idiom(
        "class A: ...\ndef f(): return A.__module__", "f", "f()", None
    ),
    "module's name": Idiom(
        "N = __name__.rpartition('.')[2]\ndef f(): return N", "f", "f()", None
    ),
    "module's file": Idiom("N = __file__[-6:]\ndef f(): return N", "f", "f()", None),
    "docstring of the module": Idiom(
        "'''Told.'''\ndef f(): return __doc__", "f", "f()", None
    ),
}
