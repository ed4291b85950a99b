"""Transposed copies of matrices in compiled code: eight by eight at once, in registers.

Element by element, a copy of 600 × 100 weights took as long as their noise.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from epsilometer.training.kernels import inline

SIDE = 8


def _block(add: bool) -> Any:
    """Compiled code for one block: target[to + c·step + r] gets source[at + r·stride + c], or that much more."""

    @intrinsic
    def turned(typing, source, at, stride, target, to, step):
        def generate(context, builder, signature, args):
            whole = ir.IntType(64)
            kind = ir.VectorType(context.get_value_type(signature.args[0].dtype), SIDE)

            def row(array, begin, apart, k):
                """Where the row is that begins `k` times `apart` behind `begin`."""
                data = context.make_array(signature.args[array])(context, builder, args[array]).data
                place = builder.add(args[begin], builder.mul(args[apart], ir.Constant(whole, k)))
                return builder.bitcast(builder.gep(data, [place]), kind.as_pointer())

            size = context.get_abi_sizeof(kind.element)  # of an element: blocks begin anywhere
            rows = [builder.load(row(0, 1, 2, k), align=size) for k in range(SIDE)]
            for half in (1, 2, 4):  # that bit of a row's number changes places with that bit of a column's
                for r in range(SIDE):
                    if not r & half:
                        rows[r], rows[r | half] = _swapped(builder, rows[r], rows[r | half], half)
            for k in range(SIDE):
                place = row(3, 4, 5, k)
                found = builder.fadd(builder.load(place, align=size), rows[k]) if add else rows[k]
                builder.store(found, place, align=size)
            return context.get_dummy_value()

        return types.void(source, types.int64, types.int64, target, types.int64, types.int64), generate

    return turned


def _swapped(builder: Any, upper: Any, lower: Any, half: int) -> tuple[Any, Any]:
    """Columns of `upper` with the bit `half` against columns of `lower` without it."""
    places = ir.VectorType(ir.IntType(32), SIDE)
    first = [SIDE + c - half if c & half else c for c in range(SIDE)]
    second = [SIDE + c if c & half else c + half for c in range(SIDE)]
    return tuple(builder.shuffle_vector(upper, lower, ir.Constant(places, chosen)) for chosen in (first, second))


_set_block, _add_block = _block(add=False), _block(add=True)


@inline
def turn(source, at, stride, rows, columns, target, to, step, add):
    """target[to + c·step + r] gets source[at + r·stride + c], or that much more if `add`; both arrays are flat."""
    wide, high = columns - columns % SIDE, rows - rows % SIDE
    for r in range(0, high, SIDE):
        for c in range(0, wide, SIDE):
            if add:
                _add_block(source, at + r * stride + c, stride, target, to + c * step + r, step)
            else:
                _set_block(source, at + r * stride + c, stride, target, to + c * step + r, step)
    for r in range(rows):
        for c in range(wide if r < high else 0, columns):
            value, place = source[at + r * stride + c], to + c * step + r
            target[place] = target[place] + value if add else value
