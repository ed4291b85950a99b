"""A whole DP-SGD training as one compiled loop (numba): fully connected networks of any depth.

Matrices of a batch are stored layer by layer as (units, records), so that everything but the products runs along
contiguous records and vectorises. Per-example gradient norms come from the norm trick (see models.py); the sum of
clipped gradients is then one product a layer. Helper functions are force-inlined, or loops would not vectorise.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, register_jitable

from epsilometer.training import sparse
from epsilometer.training import threefry as portable
from epsilometer.training.exponential import as_bits, as_float, exponential
from epsilometer.training.kernels import inline, kernel
from epsilometer.training.models import AUTOMATIC_STABILITY
from epsilometer.training.optimizers import ADAM_BETAS, ADAM_STABILITY
from epsilometer.training.threefry import COIN, NOISE, SAMPLE

f32, i32, u32 = np.float32, np.int32, np.uint32

for _helper in (portable.rotate, portable.mix, portable.four_rounds, portable.inject, portable.threefry):
    register_jitable(forceinline=True)(_helper)
threefry = portable.threefry

RELU, TANH = 0, 1
CROSS_ENTROPY, LOGISTIC, SQUARED = 0, 1, 2
FLAT, PER_LAYER, AUTOMATIC = 0, 1, 2
SGD, MOMENTUM, ADAM = 0, 1, 2
POISSON, FULL, SHUFFLE, FIXED_SIZE = 0, 1, 2, 3
NO, YES = ord("N"), ord("T")  # transpose?
CHUNK = 1024  # records that are handled at once; larger batches are handled in several goes
MANY_CLASSES = 20  # from here on softmax takes long; with fewer, stored runs go on bit by bit with the C library's eˣ


# ---------------------------------------------------------------------------------------------- intrinsics
@intrinsic
def _root(typing, number):
    def generate(_, builder, __, args):
        return builder.call(builder.module.declare_intrinsic("llvm.sqrt", [ir.FloatType()]), args)

    return types.float32(types.float32), generate


@intrinsic
def _product(typing, address, ta, tb, m, n, k, a, lda, b, ldb, beta, c, ldc):
    """Fortran's gemm at `address`: C(m, n) = op(A)·op(B) + β·C, all column-major."""
    single = a.dtype == types.float32

    def generate(context, builder, signature, args):
        real = ir.FloatType() if single else ir.DoubleType()

        def slot(value, kind):
            pointer = cgutils.alloca_once(builder, kind)
            builder.store(value, pointer)
            return pointer

        def whole(i, bits=32):
            return slot(builder.trunc(args[i], ir.IntType(bits)), ir.IntType(bits))

        def data(i):
            return context.make_array(signature.args[i])(context, builder, args[i]).data

        scale = builder.fptrunc(args[10], real) if single else args[10]
        arguments = [
            whole(1, 8), whole(2, 8), whole(3), whole(4), whole(5), slot(real(1.0), real),
            data(6), whole(7), data(8), whole(9), slot(scale, real), data(11), whole(12),
        ]  # fmt: skip
        kind = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), arguments)
        return context.get_dummy_value()

    return types.void(address, ta, tb, m, n, k, a, lda, b, ldb, beta, c, ldc), generate


# ---------------------------------------------------------------------------------------------- randomness
# Every result is made 32 bits wide again: numba would go on with 64, and noise take half as long again.
# Polynomials fitted at Chebyshev nodes: ln(1+x) = x − x²/2 + x³·P(x) for √½ ≤ 1+x ≤ √2; sin and cos for |x| ≤ π/4.
_LOG = (0.33333328, -0.25000298, 0.20001473, -0.16642216, 0.14202017, -0.12972504, 0.12713794, -0.08102603)
_L0, _L1, _L2, _L3, _L4, _L5, _L6, _L7 = (f32(c) for c in _LOG)
_S0, _S1, _S2 = f32(-0.16666664), f32(0.008332747), f32(-0.00019587699)
_C0, _C1, _C2 = f32(0.041666664), f32(-0.0013888301), f32(2.45477e-05)
_HALF, _ONE, _TWO = f32(0.5), f32(1.0), f32(2.0)
_UNIT, _LN2, _TURN = f32(2.0**-32), f32(np.log(2.0)), f32(2.0 * np.pi * 2.0**-32)
_SQRT_HALF_BITS = u32(0x3F3504F3)


@inline
def _radius(word):
    """√(−2 ln u) for u = (word + ½)·2⁻³²."""
    offset = u32(as_bits((f32(word) + _HALF) * _UNIT) - _SQRT_HALF_BITS)
    exponent = f32(i32(i32(offset) >> i32(23)))
    x = as_float(u32(u32(offset & u32(0x007FFFFF)) + _SQRT_HALF_BITS)) - _ONE
    p = ((((((_L7 * x + _L6) * x + _L5) * x + _L4) * x + _L3) * x + _L2) * x + _L1) * x + _L0
    log = x - _HALF * x * x + x * x * x * p + exponent * _LN2
    return _root(-_TWO * min(log, f32(0.0)))


@inline
def _direction(word):
    """Cosine and sine of 2π·word·2⁻³²: nearest quarter turn, and the rest in [−π/4, π/4]."""
    shifted = u32(word + u32(0x20000000))
    quarter = u32(shifted >> u32(30))
    x = f32(i32(i32(shifted & u32(0x3FFFFFFF)) - i32(0x20000000))) * _TURN
    z = x * x
    sine = x + x * z * ((_S2 * z + _S1) * z + _S0)
    cosine = _ONE - _HALF * z + z * z * ((_C2 * z + _C1) * z + _C0)
    odd = u32(quarter & u32(1)) != u32(0)
    a = sine if odd else cosine
    b = cosine if odd else sine
    a_sign, b_sign = u32(u32(quarter + u32(1)) & u32(2)), u32(quarter & u32(2))
    return as_float(u32(as_bits(a) ^ u32(a_sign << u32(30)))), as_float(u32(as_bits(b) ^ u32(b_sign << u32(30))))


@kernel
def fill_normals(key, step, out):
    """Standard normal numbers; `out` has a multiple of four places."""
    blocks = len(out) // 4
    k0, k1, k2, k3 = key[0], key[1], key[2], key[3]
    a, b, c, d = out[:blocks], out[blocks : 2 * blocks], out[2 * blocks : 3 * blocks], out[3 * blocks :]
    for i in range(blocks):
        w0, w1, w2, w3 = threefry(u32(i), u32(step), u32(NOISE), u32(0), k0, k1, k2, k3)
        cosine, sine = _direction(w1)
        radius = _radius(w0)
        a[i] = radius * cosine
        b[i] = radius * sine
        cosine, sine = _direction(w3)
        radius = _radius(w2)
        c[i] = radius * cosine
        d[i] = radius * sine


@kernel
def fill_words(key, stream, step, out):
    """Random words; `out` has a multiple of four places."""
    blocks = len(out) // 4
    k0, k1, k2, k3 = key[0], key[1], key[2], key[3]
    a, b, c, d = out[:blocks], out[blocks : 2 * blocks], out[2 * blocks : 3 * blocks], out[3 * blocks :]
    for i in range(blocks):
        a[i], b[i], c[i], d[i] = threefry(u32(i), u32(step), u32(stream), u32(0), k0, k1, k2, k3)


# ---------------------------------------------------------------------------------------------- the training
@kernel
def sample_rows(sampling, key, step, threshold, batch, words, rows):
    """Which records are in the sample: their numbers begin at rows[begin]; returns (begin, count).

    `rows` has one place more than there are records. Between calls it holds the order that sampling without
    replacement goes on from, so steps are to be taken in turn. `batch` is a batch's size and how many an epoch has.
    """
    records = len(rows) - 1
    batch_size, batches = batch
    if sampling == POISSON:
        fill_words(key, SAMPLE, step, words)
        count = 0
        for i in range(records):
            rows[count] = i
            count += np.uint64(words[i]) < threshold  # without a branch, which would be mispredicted
        return 0, count
    if sampling != SHUFFLE or step % batches == 0:
        for i in range(records):
            rows[i] = i
    if sampling == FULL:
        return 0, records
    if sampling == FIXED_SIZE:
        fill_words(key, SAMPLE, step, words)
        _shuffle(rows, words, records, batch_size)
        return 0, batch_size
    if step % batches == 0:
        fill_words(key, SAMPLE, step, words)
        _shuffle(rows, words, records, records)
    begin = (step % batches) * batch_size
    return begin, max(0, min(batch_size, records - begin))


@inline
def _shuffle(rows, words, records, places):
    """Fisher and Yates: the first `places` places get a random draw without replacement."""
    for i in range(places):
        j = i + int((np.uint64(words[i]) * np.uint64(records - i)) >> np.uint64(32))
        rows[i], rows[j] = rows[j], rows[i]


@kernel
def choose(rows, begin, count, members, chosen):
    """`chosen` gets the sampled rows: as rows of all data, if only those at `members` are in the training."""
    for r in range(count):
        row = rows[begin + r]
        chosen[r] = members[row] if len(members) > 0 else row


@kernel
def clipped_sum(theta, total, records, y, squares, rows, count, widths, clip_norm, shape, work, gemm):
    """The sum of clipped gradients of the sampled records, into `total`."""
    x, compressed = records
    batch, values, errors, norms, scale, tile, turned = work
    activation, loss, clipping = shape
    is_sparse = len(compressed[0]) > 0
    chunk = min(CHUNK, values.shape[1])
    if count == 0:
        total[:] = 0
    for start in range(0, count, chunk):
        size = min(chunk, count - start)
        if is_sparse:
            sparse.turn_weights(theta, turned)
            sparse.outputs_of(compressed, rows, start, size, turned, tile, values)
        else:
            for r in range(size):  # element by element: an assignment of slices takes twice as long
                row = rows[start + r]
                for j in range(x.shape[1]):
                    batch[r, j] = x[row, j]
            _first_outputs(theta, batch, values, widths, size, gemm)
        _forward(theta, values, widths, size, activation, gemm)
        _output_error(loss, values, errors, y, rows, start, size, widths, norms)
        _backward(theta, values, errors, widths, size, activation, gemm)
        _clip_factors(clipping, values, errors, squares, rows, start, size, widths, clip_norm, norms, scale)
        _scale_errors(errors, scale, widths, size)
        beta = 1.0 if start else 0.0
        if is_sparse:
            sparse.add_gradients(compressed, rows, start, size, errors, tile, turned, beta, total)
        else:
            _first_gradients(total, batch, errors, widths, size, beta, gemm)
        _sum_gradients(total, values, errors, widths, size, beta, gemm)


@inline
def _first_outputs(theta, batch, values, widths, size, gemm):
    """What the first layer makes of records, without its bias."""
    wide = (size + 15) // 16 * 16  # MKL takes twice as long for 250 records as for 256; the surplus is never read
    inputs = widths[0]
    _product(gemm, YES, NO, wide, widths[1], inputs, batch, inputs, theta, inputs, 0.0, values, values.shape[1])


@inline
def _forward(theta, values, widths, size, activation, gemm):
    """`values` gets the outputs of each layer in turn: rows are units, columns records."""
    stride = values.shape[1]
    at, top, below = 0, 0, 0
    for layer in range(len(widths) - 1):
        inputs, outputs = widths[layer], widths[layer + 1]
        here = values[top : top + outputs]
        if layer > 0:
            under = values[below : below + inputs]
            _product(gemm, NO, NO, size, outputs, inputs, under, stride, theta[at:], inputs, 0.0, here, stride)
        at += inputs * outputs
        for j in range(outputs):
            bias = theta[at + j]
            row = here[j]
            if layer == len(widths) - 2:
                for r in range(size):
                    row[r] += bias
            elif activation == RELU:
                for r in range(size):
                    row[r] = max(row[r] + bias, theta.dtype.type(0))
            else:
                for r in range(size):
                    row[r] = np.tanh(row[r] + bias)
        at += outputs
        below, top = top, top + outputs


@inline
def _output_error(loss, values, errors, y, rows, start, size, widths, work):
    """The derivative of the loss by the logits. Loops run along records, class by class: memory does too."""
    classes = widths[-1]
    logits, error = values[-classes:], errors[-classes:]
    one = logits.dtype.type(1)
    if loss == CROSS_ENTROPY:
        _softmax(logits, error, size, work[0], work[1])
    elif loss == LOGISTIC:
        for j in range(classes):
            for r in range(size):
                error[j, r] = one / (one + np.exp(-logits[j, r]))
    else:
        for j in range(classes):
            for r in range(size):
                error[j, r] = logits[j, r]
    for r in range(size):
        error[y[rows[start + r]], r] -= one


@inline
def _softmax(logits, out, size, largest, norm):
    for r in range(size):
        largest[r] = logits[0, r]
        norm[r] = 0
    for j in range(1, len(logits)):
        for r in range(size):
            largest[r] = max(largest[r], logits[j, r])
    for j in range(len(logits)):
        if len(logits) >= MANY_CLASSES:
            for r in range(size):
                out[j, r] = exponential(logits[j, r] - largest[r])
        else:
            for r in range(size):
                out[j, r] = np.exp(logits[j, r] - largest[r])
        for r in range(size):
            norm[r] += out[j, r]
    for r in range(size):
        norm[r] = logits.dtype.type(1) / norm[r]
    for j in range(len(logits)):
        for r in range(size):
            out[j, r] *= norm[r]


@inline
def _backward(theta, values, errors, widths, size, activation, gemm):
    """`errors` gets the derivative of the loss by each layer's input to its activation."""
    stride = values.shape[1]
    at, top = len(theta), values.shape[0]
    for layer in range(len(widths) - 2, 0, -1):
        inputs, outputs = widths[layer], widths[layer + 1]
        at -= outputs + inputs * outputs
        top -= outputs
        above, here, value = errors[top : top + outputs], errors[top - inputs : top], values[top - inputs : top]
        _product(gemm, NO, YES, size, inputs, outputs, above, stride, theta[at:], inputs, 0.0, here, stride)
        for j in range(inputs):
            error, out = here[j], value[j]
            if activation == RELU:
                for r in range(size):
                    error[r] = error[r] if out[r] > 0 else theta.dtype.type(0)
            else:
                for r in range(size):
                    error[r] *= theta.dtype.type(1) - out[r] * out[r]


@inline
def _clip_factors(clipping, values, errors, squares, rows, start, size, widths, clip_norm, norms, scale):
    """By what each layer's part of each record's gradient is multiplied (see models.clip_factors).

    ‖g‖² = Σ over layers of (‖input‖² + 1)·‖error‖².
    """
    one = values.dtype.type(1)
    layers = len(widths) - 1
    total, inner = norms[0], norms[1]
    for r in range(size):
        total[r] = 0
        inner[r] = squares[rows[start + r]] + one
    top = 0
    for layer in range(layers):
        outputs = widths[layer + 1]
        part = scale[layer]
        part[:size] = 0
        for j in range(top, top + outputs):
            row = errors[j]
            for r in range(size):
                part[r] += row[r] * row[r]
        for r in range(size):
            part[r] *= inner[r]
            total[r] += part[r]
        if layer < layers - 1:
            inner[:size] = one
            for j in range(top, top + outputs):
                row = values[j]
                for r in range(size):
                    inner[r] += row[r] * row[r]
        top += outputs
    limit = values.dtype.type(clip_norm / np.sqrt(layers)) if clipping == PER_LAYER else clip_norm
    for layer in range(layers):
        part = scale[layer]
        square = part if clipping == PER_LAYER else total
        for r in range(size):
            norm = np.sqrt(square[r])
            if clipping == AUTOMATIC:
                part[r] = limit / (norm + values.dtype.type(AUTOMATIC_STABILITY))
            else:
                part[r] = one if norm <= limit else limit / norm  # a norm that is not a number must not pass


@inline
def _scale_errors(errors, scale, widths, size):
    """From here on errors are of clipped gradients."""
    top = 0
    for layer in range(len(widths) - 1):
        factor = scale[layer]
        for j in range(top, top + widths[layer + 1]):
            row = errors[j]
            for r in range(size):
                row[r] *= factor[r]
        top += widths[layer + 1]


@inline
def _first_gradients(total, batch, errors, widths, size, beta, gemm):
    inputs = widths[0]
    _product(gemm, NO, NO, inputs, widths[1], size, batch, inputs, errors, errors.shape[1], beta, total, inputs)


@inline
def _sum_gradients(total, values, errors, widths, size, beta, gemm):
    """Add the chunk's clipped gradients to `total` (or begin it, with β = 0); the first layer has its weights' part."""
    stride = values.shape[1]
    at, top, below = 0, 0, 0
    for layer in range(len(widths) - 1):
        inputs, outputs = widths[layer], widths[layer + 1]
        error = errors[top : top + outputs]
        if layer > 0:
            under = values[below : below + inputs]
            _product(gemm, YES, NO, inputs, outputs, size, under, stride, error, stride, beta, total[at:], inputs)
        at += inputs * outputs
        _sum_rows(error, size, beta, total[at : at + outputs])
        at += outputs
        below, top = top, top + outputs


@inline
def _sum_rows(error, size, beta, out):
    """out[j] gets β times itself and the sum of row j, from left to right.

    Eight rows at a time: in one row every addition waits for the one before it.
    """
    zero = out.dtype.type(0)
    whole = len(out) - len(out) % 8
    for j in range(0, whole, 8):
        r0, r1, r2, r3 = error[j], error[j + 1], error[j + 2], error[j + 3]
        r4, r5, r6, r7 = error[j + 4], error[j + 5], error[j + 6], error[j + 7]
        s0, s1, s2, s3, s4, s5, s6, s7 = zero, zero, zero, zero, zero, zero, zero, zero
        for r in range(size):
            s0, s1, s2, s3 = s0 + r0[r], s1 + r1[r], s2 + r2[r], s3 + r3[r]
            s4, s5, s6, s7 = s4 + r4[r], s5 + r5[r], s6 + r6[r], s7 + r7[r]
        for i, found in enumerate((s0, s1, s2, s3, s4, s5, s6, s7)):
            out[j + i] = found if beta == 0.0 else out[j + i] + found
    for j in range(whole, len(out)):
        row, found = error[j], zero
        for r in range(size):
            found += row[r]
        out[j] = found if beta == 0.0 else out[j] + found


@kernel
def noisy_step(theta, total, noise, key, step, spread, rate, inverse_batch, update, first, second):
    """Add the noise to `total`, and step against it; `first` and `second` are the optimizer's memory."""
    fill_normals(key, step, noise)
    kind, decay, momentum = update
    real = theta.dtype.type
    if kind == SGD and decay == 0:
        scaled = real(rate * inverse_batch)
        for j in range(len(theta)):
            total[j] += spread * real(noise[j])
            theta[j] -= scaled * total[j]
        return
    rate, inverse_batch, decay, momentum = real(rate), real(inverse_batch), real(decay), real(momentum)
    b1, b2, tiny = real(ADAM_BETAS[0]), real(ADAM_BETAS[1]), real(ADAM_STABILITY)
    correct1, correct2 = real(1 - ADAM_BETAS[0] ** (step + 1)), real(1 - ADAM_BETAS[1] ** (step + 1))
    for j in range(len(theta)):
        total[j] += spread * real(noise[j])
        gradient = total[j] * inverse_batch + decay * theta[j]
        if kind == MOMENTUM:
            first[j] = momentum * first[j] + gradient
            gradient = first[j]
        elif kind == ADAM:
            first[j] = b1 * first[j] + (real(1) - b1) * gradient
            second[j] = b2 * second[j] + (real(1) - b2) * gradient * gradient
            gradient = (first[j] / correct1) / (np.sqrt(second[j] / correct2) + tiny)
        theta[j] -= rate * gradient


@kernel
def train_steps(
    steps, theta, total, noise, records, y, squares, widths, key, threshold, batch, clip_norm, spread, rates,
    inverse_batch, sampling, shape, update, first, second, words, rows, members, chosen, work, gemm, inserted, probe,
    seen,
):  # fmt: skip
    """One training from beginning to end; `seen[t]` gets ⟨noisy sum, probe⟩ of each step."""
    coin = np.empty(4, np.uint32)
    for step in range(steps):
        begin, count = sample_rows(sampling, key, step, threshold, batch, words, rows)
        choose(rows, begin, count, members, chosen)
        clipped_sum(theta, total, records, y, squares, chosen, count, widths, clip_norm, shape, work, gemm)
        if len(inserted) > 0:
            fill_words(key, COIN, step, coin)
            if np.uint64(coin[0]) < threshold:
                for j in range(len(total)):
                    total[j] += inserted[j]
        noisy_step(theta, total, noise, key, step, spread, rates[step], inverse_batch, update, first, second)
        if len(probe) > 0:
            projection = 0.0
            for j in range(len(total)):
                projection += total[j] * probe[j]
            seen[step] = projection
