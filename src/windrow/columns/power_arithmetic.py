"""The arithmetic of power sums, as text: numbers in three words or two, and a bound for the rest.

Every sum is carried in three words, w0 + w1 + w2, and a bound for what they leave out. ``put`` adds
a number to the first word, what that rounds off to the second, what is left of that to the third;
only what even the third cannot take is lost, and its size is added to the bound. So the bound is 0
where three words hold everything, which they do for all data on a grid that is not too fine.

Products, quotients and roots are in two words, with bounds carried along: where a number moved up
and down by its bound rounds to the same float, that float is certain.

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
    """Two words each, and bounds."""
    h, r = two_sum(s[0], t[0])
    small = abs(s[1]) + abs(t[1])
    r += s[1] + t[1]
    e = 0.0 if small == 0.0 else 4e-16 * (abs(r) + small)
    h, r = two_sum(h, r)
    return h, r, s[2] + t[2] + e


@njit(error_model="numpy", forceinline=True)
def times(s, t):
    p, q = two_prod(s[0], t[0])
    small = s[0] * t[1] + s[1] * t[0]
    e = abs(s[1] * t[1])
    if s[1] != 0.0 or t[1] != 0.0:
        e += 5e-16 * (abs(q) + abs(s[0] * t[1]) + abs(s[1] * t[0]))
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
def less2(t, s, c):
    """t - c·s, two words."""
    return add(t, by(s, -c))


@njit(error_model="numpy", forceinline=True)
def over(s, t):
    """s / t; t is not 0, and certainly so."""
    q = s[0] / t[0]
    p, e = two_prod(q, t[0])
    rest = (((s[0] - p) - e) + s[1]) - q * t[1]
    h, r = two_sum(q, rest / t[0])
    wide = 1.01 * (s[2] + abs(q) * t[2]) / (abs(t[0]) - 2.0 * t[2])
    return h, r, wide + 1e-30 * abs(q)


@njit(error_model="numpy", forceinline=True)
def root(t):
    """The square root of something above 0, and certainly so."""
    s = math.sqrt(t[0])
    p, e = two_prod(s, s)
    rest = ((t[0] - p) - e) + t[1]
    h, r = two_sum(s, rest / (2.0 * s))
    return h, r, 0.51 * t[2] / s + 1e-30 * s


@njit(error_model="numpy", forceinline=True)
def nothing(t):
    return t[0] == 0.0 and t[1] == 0.0 and t[2] == 0.0


@njit(error_model="numpy", forceinline=True)
def unclear(t):
    """Whether it might be 0 or below."""
    return not (t[0] > 8.0 * t[2] and t[0] > 1e-280)


@njit(error_model="numpy", forceinline=True)
def certain(t):
    """The float nearest to it, or NaN."""
    if nothing(t):
        return 0.0
    y = abs(t[1]) + (t[2] * 1.0000001 + abs(t[1]) * 1e-15)
    if abs(t[0]) > 1e-280 and abs(t[0]) < 1e300 and t[0] + y == t[0] and t[0] - y == t[0]:
        return t[0]
    return np.nan


@njit(error_model="numpy", forceinline=True)
def product(a, b):
    p, q = two_prod(a, b)
    return p, q, 0.0
'''
