"""The arithmetic of power sums, as text: numbers in three words or two, and a bound for the rest.

Sums of ``power_kernels`` are in three words, w0 + w1 + w2, and a bound for what they leave out.
``put`` adds a number to the first word, what that rounds off to the second, what is left of that to
the third; only what even the third cannot take is lost, and its size is added to the bound. So the
bound is 0 where three words hold everything, which they do for all data on a grid that is not too
fine.

Differences, products, quotients and roots are in two words, (h, l, e): h + l, off by at most e.
Where a number moved up and down by its bound rounds to the same float, that float is certain.
Bounds hold for normal numbers, but for a ten-millionth of themselves, since they are rounded too;
``certain`` adds it. u is 2⁻⁵³. There are no branches, so that many rows can be worked on at once.

It is text because a kernel's parts must be globals of the kernel's own module (``template``).
"""

ARITHMETIC = '''
from windrow.columns.fused import fma


@njit(error_model="numpy", forceinline=True)
def two_sum(a, b):
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@njit(error_model="numpy", forceinline=True)
def two_prod(a, b):
    p = a * b
    return p, fma(a, b, -p)


@njit(error_model="numpy", forceinline=True)
def put(t, x):
    a, r = two_sum(t[0], x)
    b, r = two_sum(t[1], r)
    c, r = two_sum(t[2], r)
    return a, b, c, t[3] + abs(r)


@njit(error_model="numpy")
def join(s, t):
    """s + t, three words each."""
    u = put(put(put(s, t[0]), t[1]), t[2])
    return u[0], u[1], u[2], u[3] + t[3]


@njit(error_model="numpy", forceinline=True)
def in_order(t):
    """The same number, its words as far apart as they can be."""
    a, r = two_sum(t[0], t[1])
    b, c = two_sum(r, t[2])
    a, b = two_sum(a, b)
    b, c = two_sum(b, c)
    return a, b, c, t[3]


@njit(error_model="numpy", forceinline=True)
def as_two(t):
    a, b, c, e = in_order(t)
    return a, b, abs(c) + e


@njit(error_model="numpy")
def less3(t, s, c):
    """t - c·s, three words."""
    p0, q0 = two_prod(-c, s[0])
    p1, q1 = two_prod(-c, s[1])
    p2, q2 = two_prod(-c, s[2])
    u = put(put(put(t, p0), q0), p1)
    u = put(put(put(u, q1), p2), q2)
    return in_order((u[0], u[1], u[2], u[3] + 1.0000001 * abs(c) * s[3]))


@njit(error_model="numpy", forceinline=True)
def add(s, t):
    h, r = two_sum(s[0], t[0])
    r += s[1] + t[1]
    e = 4e-16 * (abs(r) + abs(s[1]) + abs(t[1]))
    h, r = two_sum(h, r)
    return h, r, s[2] + t[2] + e


@njit(error_model="numpy", forceinline=True)
def times(s, t):
    p, q = two_prod(s[0], t[0])
    small = s[0] * t[1] + s[1] * t[0]
    e = abs(s[1] * t[1]) + 5e-16 * (abs(q) + abs(s[0] * t[1]) + abs(s[1] * t[0]))
    h, r = two_sum(p, q + small)
    wide = 1.0000001 * (abs(s[0]) * t[2] + abs(t[0]) * s[2]) + s[2] * t[2]
    return h, r, wide + e


@njit(error_model="numpy", forceinline=True)
def by(s, c):
    return times(s, (c, 0.0, 0.0))


@njit(error_model="numpy", forceinline=True)
def negative(s):
    return -s[0], -s[1], s[2]


@njit(error_model="numpy", forceinline=True)
def less(s, t):
    return add(s, negative(t))


@njit(error_model="numpy", forceinline=True)
def exactly(a):
    return a, 0.0, 0.0


@njit(error_model="numpy", forceinline=True)
def words(a, b, c, e):
    """a + b + c in two words; e is what the three are off by."""
    h, l = two_sum(a, b)
    l += c
    e += 1.2e-16 * abs(l)
    h, l = two_sum(h, l)
    return h, l, e


@njit(error_model="numpy", forceinline=True)
def apart(n, s, a, b):
    """n·s − a·b; what is rounded is below 7u² of n·s and 13u² of a·b."""
    big = n * s[0]
    big_low = fma(n, s[1], fma(n, s[0], -big))
    p = a[0] * b[0]
    p_low = fma(a[1], b[0], fma(a[0], b[1], fma(a[0], b[0], -p)))
    d, r = two_sum(big, -p)
    d, r = two_sum(d, r + (big_low - p_low))
    wide = n * s[2] + abs(a[0]) * b[2] + abs(b[0]) * a[2] + a[2] * b[2]
    return d, r, 1.0000001 * wide + 1.7e-31 * (abs(big) + abs(p))


@njit(error_model="numpy", forceinline=True)
def over(s, t):
    """s / t, where t is clear."""
    q = s[0] / t[0]
    p, e = two_prod(q, t[0])
    rest = (((s[0] - p) - e) + s[1]) - q * t[1]
    h, r = two_sum(q, rest / t[0])
    wide = 1.01 * (s[2] + abs(q) * t[2]) / (abs(t[0]) - 2.0 * t[2])
    return h, r, wide + 1e-30 * abs(q)


@njit(error_model="numpy", forceinline=True)
def root(t):
    """The square root, where t is clear."""
    s = math.sqrt(t[0])
    p, e = two_prod(s, s)
    rest = ((t[0] - p) - e) + t[1]
    h, r = two_sum(s, rest / (2.0 * s))
    return h, r, 0.51 * t[2] / s + 1e-30 * s


@njit(error_model="numpy", forceinline=True)
def nothing(t):
    return t[0] == 0.0 and t[1] == 0.0 and t[2] == 0.0


@njit(error_model="numpy", forceinline=True)
def clear(t):
    """Whether it certainly is above 0."""
    return t[0] > 8.0 * t[2] and t[0] > 1e-280


@njit(error_model="numpy", forceinline=True)
def certain(t, sure):
    """The float nearest to it, where that is certain, or NaN."""
    y = t[2] * 1.0000001 + abs(t[1]) * 1e-15
    low = t[0] + (t[1] - y)
    size = abs(low)
    fine = low == t[0] + (t[1] + y) and size > 1e-280 and size < 1e300
    found = low if fine else 0.0 if nothing(t) else np.nan
    return found if sure else np.nan


@njit(error_model="numpy", forceinline=True)
def product(a, b):
    p, q = two_prod(a, b)
    return p, q, 0.0
'''
