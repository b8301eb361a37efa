"""Integer expressions: how they are written, identified, and worked out step by step.

An expression is a `Total` of signed terms; a term is a `Number`, a `Product` or a bracketed
`Total`. That is all the reasoner is asked, so nothing more general is offered here.

The working is the thought the model learns to write: one operation per line, split so that every
step is small: 46+38 goes by tens and ones, 46+38=76+8=84, and 34*6 likewise, 34*6=180+24=204.
"""

from dataclasses import dataclass

LARGEST = 9999


class Unwieldy(ValueError):
    """The working would leave the range the model is taught; draw another expression."""


@dataclass(frozen=True)
class Number:
    value: int


@dataclass(frozen=True)
class Product:
    factors: tuple  # of Number | Total


@dataclass(frozen=True)
class Total:
    terms: tuple  # of (sign, Number | Product | Total); the first sign is "+"


def write(expression, gap=""):
    """The expression as a person types it, with `gap` around every operator."""
    if isinstance(expression, Number):
        return str(expression.value)
    if isinstance(expression, Product):
        return f"{gap}*{gap}".join(_bracketed(f, gap) for f in expression.factors)
    first, *rest = expression.terms
    return _bracketed(first[1], gap) + "".join(
        f"{gap}{sign}{gap}{_bracketed(term, gap)}" for sign, term in rest
    )


def identity(expression):
    """One name for all orders of the same sum or product: the split hashes this, not the text."""
    if isinstance(expression, Number):
        return str(expression.value)
    if isinstance(expression, Product):
        return "*".join(sorted(identity(f) for f in expression.factors))
    return "(" + "".join(sorted(sign + identity(term) for sign, term in expression.terms)) + ")"


def composites(expression):
    """The expression and every part of it that takes more than one step, so that no held-out
    expression is met inside a longer one either."""
    if isinstance(expression, Number):
        return
    if isinstance(expression, Product):
        parts = expression.factors
    else:
        parts = [term for _, term in expression.terms]
    if len(parts) > 2 or not all(isinstance(p, Number) for p in parts) or _needs_parts(expression):
        yield expression
    for part in parts:
        yield from composites(part)


def work_out(expression):
    """The value, and the lines of working that lead to it."""
    lines = []
    return _evaluate(expression, lines), lines


def steps(lines):
    """Elementary steps: every result written counts, and so does a comparison."""
    return sum(line.count(sign) for line in lines for sign in "=<>")


def _bracketed(part, gap):
    text = write(part, gap)
    return f"({text})" if isinstance(part, Total) else text


def _needs_parts(expression):
    return isinstance(expression, Product) and any(
        len(_place_values(f.value)) > 1 for f in expression.factors
    )


def _evaluate(expression, lines):
    if isinstance(expression, Number):
        return expression.value
    if isinstance(expression, Product):
        first, *rest = expression.factors
        value = _evaluate(first, lines)
        for factor in rest:
            value = _multiply(value, _evaluate(factor, lines), lines)
        return value
    first, *rest = expression.terms
    value = _evaluate(first[1], lines)
    for sign, term in rest:
        value = _add(value, sign, _evaluate(term, lines), lines)
    return value


def _add(left, sign, right, lines):
    """Place by place, the largest first: 234+578=734+78=804+8=812. Below zero the other way round
    comes first: 53-57 is 57-53=7-3=4, then 53-57=-4."""
    if left < 0 or right < 0:
        raise Unwieldy("a negative number ends a working, it does not go on")
    value = _checked(left + right if sign == "+" else left - right)
    line = f"{left}{sign}{right}"
    if value < 0:
        _add(right, "-", left, lines)
    else:
        parts = _place_values(right)
        while len(parts) > 1:
            part = parts.pop(0)
            left += part if sign == "+" else -part
            line += f"={left}{sign}{sum(parts)}"
    lines.append(f"{line}={value}")
    return value


def _multiply(left, right, lines):
    """Digit by digit: 34*6=180+24=204, and 34*27 as 34*20, 34*7 and their sum."""
    if left < 0 or right < 0:
        raise Unwieldy("products of negative numbers are not taught")
    _checked(left * right)
    if len(_place_values(left)) <= 1 or len(_place_values(right)) <= 1:
        return _multiply_by_digit(left, right, lines)
    total = None
    for part in _place_values(right):
        partial = _multiply_by_digit(left, part, lines)
        total = partial if total is None else _add(total, "+", partial, lines)
    return total


def _multiply_by_digit(left, right, lines):
    if len(_place_values(left)) > 1:
        partials = [part * right for part in _place_values(left)]
    else:
        partials = [left * part for part in _place_values(right)]
    line = f"{left}*{right}={'+'.join(map(str, partials)) or 0}"
    while len(partials) > 1:
        partials[:2] = [partials[0] + partials[1]]
        line += f"={'+'.join(map(str, partials))}"
    lines.append(line)
    return left * right


def _place_values(number):
    """234 is 200, 30 and 4; zeros are left out."""
    digits = str(number)
    return [int(d) * 10 ** (len(digits) - 1 - i) for i, d in enumerate(digits) if d != "0"]


def _checked(value):
    if abs(value) > LARGEST:
        raise Unwieldy(f"{value} is out of range")
    return value
