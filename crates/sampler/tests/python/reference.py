"""Spaces as Python enumerates them: T1 descriptions on standard input, a verdict for every point on standard output.

The rule is that of `tilewright_sampler::LegalSet`, computed here with Python's own parser and evaluator: constraints are
taken apart at `and`, at the links of a chain and at `not (... or ...)`. A point is illegal (F) where a part is false, an
error (E) where no part is false and one has no value, and else legal (T).

A part is evaluated with every operation wrapped, since some values that Python has are none in the language: integers
beyond 64 bits, floats that are not finite, complex numbers, words from arithmetic. Only these count as no value beside what
Python raises, and the points that such values alone decide are counted by kind. Whatever meets none of them is evaluated
once more as it is written, and must say what its parts say.
"""

import ast
import itertools
import json
import math
import sys
import warnings


class Limit(Exception):
    """A value that Python has and the language has not."""


def kept(value):
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise Limit("integers beyond 64 bits")
    if isinstance(value, float) and not math.isfinite(value):
        raise Limit("floats that are not finite")
    if isinstance(value, complex):
        raise Limit("complex numbers")
    if isinstance(value, str):
        raise Limit("words from arithmetic")
    return value


def times(a, b):
    # A word repeated a thousand million times does not fit in memory.
    if isinstance(a, str) and isinstance(b, int) or isinstance(a, int) and isinstance(b, str):
        raise Limit("words from arithmetic")
    return kept(a * b)


def power(a, b):
    # The integer is known to be too long before it is computed, which could take forever.
    if isinstance(a, int) and isinstance(b, int) and abs(a) > 1 and b > 64:
        raise Limit("integers beyond 64 bits")
    return kept(a**b)


def number(function):
    def called(value):
        out = kept(function(value))
        # `int('3')` is no arithmetic of the language.
        if isinstance(value, str):
            raise Limit("words from arithmetic")
        return out

    return called


PLAIN = {name: getattr(math, name) for name in ("ceil", "floor", "log2", "sqrt")}
PLAIN |= {"math": math, "len": len, "min": min, "max": max, "range": range, "list": list}
PLAIN |= {"abs": abs, "round": round, "int": int, "float": float, "__builtins__": {}}
NUMBERS = ("ceil", "floor", "log2", "sqrt", "abs", "round", "int", "float")
WRAPPED = PLAIN | {name: number(PLAIN[name]) for name in NUMBERS} | {"kept": kept, "times": times, "power": power}


class Wrap(ast.NodeTransformer):
    """Every arithmetic operation looks at its result."""

    def visit_BinOp(self, node):
        self.generic_visit(node)
        for kind, name in ((ast.Mult, "times"), (ast.Pow, "power")):
            if isinstance(node.op, kind):
                return call(name, [node.left, node.right])
        return call("kept", [node])

    def visit_UnaryOp(self, node):
        self.generic_visit(node)
        return node if isinstance(node.op, ast.Not) else call("kept", [node])

    def visit_Attribute(self, node):
        return ast.Name(node.attr, ast.Load())


def call(name, arguments):
    return ast.Call(ast.Name(name, ast.Load()), arguments, [])


def functions(nodes, names):
    """Wrapped expressions as functions of the parameters."""
    arguments = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
    tree = ast.Tuple([ast.Lambda(arguments, node) for node in nodes], ast.Load())
    return eval(compile(ast.fix_missing_locations(ast.Expression(tree)), "constraint", "eval"), WRAPPED)


def parts(node):
    """What `and` joins, in all its disguises."""
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return [part for value in node.values for part in parts(value)]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = node.operand
        if isinstance(inner, ast.BoolOp) and isinstance(inner.op, ast.Or):
            return [part for value in inner.values for part in parts(ast.UnaryOp(ast.Not(), value))]
        if isinstance(inner, ast.UnaryOp) and isinstance(inner.op, ast.Not):
            return parts(inner.operand)
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        lefts = [node.left, *node.comparators]
        return [ast.Compare(a, [op], [b]) for a, op, b in zip(lefts, node.ops, node.comparators)]
    return [node]


def outcome(test, point):
    try:
        return "T" if test(*point) else "F"
    except Limit as limit:
        return limit.args[0]
    except (ArithmeticError, TypeError, ValueError):
        return "E"


class Constraint:
    def __init__(self, text, names):
        self.text = text
        self.whole = eval(f"lambda {', '.join(names)}: ({text})", PLAIN)
        # What is wrapped is changed no more, so that two links of a chain may share a side.
        self.parts = functions(parts(Wrap().visit(ast.parse(text, mode="eval").body)), names)

    def outcomes(self, point):
        found = [outcome(part, point) for part in self.parts]
        if all(f in "TFE" for f in found):
            whole = outcome(self.whole, point)
            said = "T" if all(f == "T" for f in found) else "F" if "F" in found else "E"
            # Python stops at the first error, which a later part that is false would excuse.
            if whole != said and not (whole == "E" and said == "F" and "E" in found):
                raise AssertionError(f"{self.text} at {point} is {whole}, its parts say {found}")
        return found


def values(given):
    given = list(eval(given, PLAIN)) if isinstance(given, str) else given
    return list({repr(value): value for value in given}.values())


def verdicts(document):
    space = document["ConfigurationSpace"]
    names = [parameter["Name"] for parameter in space["TuningParameters"]]
    choices = [values(parameter["Values"]) for parameter in space["TuningParameters"]]
    constraints = [Constraint(condition["Expression"], names) for condition in space["Conditions"]]
    points, blamed, limits = [], {}, {}
    for point in itertools.product(*choices):
        found = [constraint.outcomes(point) for constraint in constraints]
        flat = [f for of in found for f in of]
        points.append("F" if "F" in flat else "T" if all(f == "T" for f in flat) else "E")
        if points[-1] == "E":
            valued = ("T", "F")
            blamed[len(points) - 1] = [i for i, of in enumerate(found) if any(f not in valued for f in of)]
            if "E" not in flat:
                kind = next(f for f in flat if f != "T")
                limits[kind] = limits.get(kind, 0) + 1
    return {"points": "".join(points), "blamed": blamed, "limits": limits}


# Constraints may compare words with numbers by identity of types: a warning for each would drown what matters.
warnings.simplefilter("ignore")
json.dump([verdicts(document) for document in json.load(sys.stdin)], sys.stdout)
