"""The texts of kernels that work in strips: many answers side by side.

A monomial of a row is two floats, p + q, and is cut into three parts: a multiple of a unit, a
multiple of a finer unit, and a rest. The units are so large that sums of the first two parts never
round (``units_of`` chooses them), so that rows can be added and taken out again, and so small that
what the third part rounds off is far below the last bit of an answer. No bounds are carried along
row by row: one bound holds for a whole region of rows.

With M the largest value and at most R rows in a sum, sums of first parts stay below 2⁵² units of
2⁻⁵¹·M·R, those of second parts below 2⁵² of the finer unit, 2⁻⁵¹·R·unit. A third part is at most
half the finer unit and what p + q rounds off; adding it up rounds by u·R times that at each step,
on both sides of a range. What p + q itself leaves out of a monomial of three or four factors is
there once for each row of a range.

Rows are worked on in strips. In a strip only adding up depends on the row before; cutting before it
and answering after it are loops without branches, of which the processor does several rows at once.

``running``  the last ``width`` rows of one run: the parts of the row that comes less those of the
             row that leaves are added up
``moving``   ranges [lo, hi) that only move forward: two running sums, of rows up to hi and up to
             lo, and their difference, which is exact for the first two parts
``pieces``   the same, begun anew where ranges have no row in common and values become much larger
             or smaller, as they do from key to key: one large value does not spoil all
"""

STRIP = 128
"""Rows that are worked on at once: their parts stay in the processor's nearest cache."""

CUT = '''

@njit(error_model="numpy", forceinline=True)
def cut(p, q, magic, finer):
    """p + q in three parts; ``magic`` and ``finer`` round to units when added and taken away."""
    a = (p + magic) - magic
    s, e = two_sum(p - a, q)
    b = (s + finer) - finer
    return a, b, (s - b) + e
'''

FILL = '''

@njit(nogil=True, error_model="numpy")
def fill({inputs}, start, count, units, totals, sums):
    """Running sums of the parts before each of some rows, and after the last; the latter."""
    for k in range(count):
        {row} = parts_of_row({at_row}, units)
        {set_next}
    {row} = totals
    {set_first}
    for k in range(1, count + 1):
        {add_up}
    return {row_tuple}
'''

RUNNING = """

@njit(cache=True, nogil=True, error_model="numpy")
def running({inputs}, width, first, last, counts, units, bounds, ddof, fewest, out):
    sums = np.empty({count} * WIDE)
    rows = np.empty(STRIP)
    doubts = 0
    totals = fill({inputs}, max(first - width, 0), 0, units, {zeros}, sums)
    i = max(first - width, 0)
    while i < first:
        size = min(STRIP, first - i)
        totals = fill({inputs}, i, size, units, totals, sums)
        i += size
    while i < last:
        size = min(STRIP, last - i)
        if i < width:  # windows that still grow
            size = min(size, width - i)
            totals = fill({inputs}, i, size, units, totals, sums)
        else:
            start = i
            old = i - width
            for k in range(size):
                {row} = parts_of_row({at_row}, units)
                {left} = parts_of_row({at_old}, units)
                {set_difference}
            {row} = totals
            for k in range(1, size + 1):
                {add_up}
            totals = {row_tuple}
        if len(counts):
            for k in range(size):
                rows[U(k)] = counts[U(i + k + 1)] - counts[U(max(i + k + 1 - width, 0))]
        else:
            for k in range(size):
                rows[U(k)] = min(i + k + 1, width)
        answers = out[i : i + size]
        for k in range(size):
            n = rows[U(k)]
            {row} = {get_next}
            found = answer(n, {row}, bounds, ddof)
            found = found if n >= fewest else 0.0
            doubts += found != found
            answers[U(k)] = found
        i += size
    return doubts
"""

UNITS = """

@njit(nogil=True, error_model="numpy")
def unit_of(size, rows, steps, rounded):
    many = rows + 1.0
    unit = math.frexp(size * many)[1] - 51
    finer = math.frexp(math.ldexp(many, unit))[1] - 51
    third = 1.01 * (math.ldexp(0.5, finer) + math.ldexp(1.0, unit - 53))
    bound = 4.5e-16 * (steps + rows + 16.0) * (many + 4.0) * third + many * rounded * 1.3e-32 * size
    return math.ldexp(1.5, unit + 52), math.ldexp(1.5, finer + 52), bound


@njit(cache=True, nogil=True, error_model="numpy")
def units_of({sizes}, rows, steps):
    {make_sizes}
    fine = max({monomials}) * (rows + 1.0) < 1e290
    {make_units}
    return fine, ({units}), ({bounds})
"""

PIECES = """

@njit(nogil=True)
def largest(x, first, last):
    bits = x.view(np.uint64)
    most = U(0)
    for i in range(first, last):
        most = max(most, bits[U(i)] << U(1))  # without the sign
    return most


@njit(nogil=True)
def alike(a, b):
    '''Whether two sizes, as bits, are within a thousand of each other; nothing is like all.'''
    return a == U(0) or b == U(0) or max(a, b) - min(a, b) < U(10) << U(53)


@njit(cache=True, nogil=True, error_model="numpy")
def pieces({inputs}, lo, hi, first, last, counts, ddof, fewest, out):
    room = np.empty((4, {count} * WIDE))
    float_of = np.empty({input_count})
    bits_of = float_of.view(np.uint64)
    doubts = 0
    i = first
    while i < last:
        {no_bits}
        j = i
        start = lo[i]
        end = start
        while j < last:
            run = j + 1
            run_end = max(hi[j], lo[j])
            while run < last and lo[run] < run_end:
                run_end = max(hi[run], run_end)
                run += 1
            # rows between runs are added up and taken out, too
            {run_bits}
            if j > i and (end - start > 4096 or not ({all_alike})):
                break
            {more_bits}
            end = run_end
            j = run
        {give_bits}
        fine, units, bounds = units_of({float_sizes}, end - start, end - start)
        if fine:
            rest = (counts, units, bounds, ddof, fewest, out, room)
            doubts += slide({inputs}, lo, hi, i, j, *rest)
        else:
            out[i:j] = np.nan
            doubts += j - i
        i = j
    return doubts
"""

MOVING = """

@njit(cache=True, nogil=True, error_model="numpy")
def moving({inputs}, lo, hi, first, last, counts, units, bounds, ddof, fewest, out):
    room = np.empty((4, {count} * WIDE))
    return slide({inputs}, lo, hi, first, last, counts, units, bounds, ddof, fewest, out, room)
"""

SLIDE = """

@njit(nogil=True, error_model="numpy")
def slide({inputs}, lo, hi, first, last, counts, units, bounds, ddof, fewest, out, room):
    young, old, sums, rows = room[0], room[1], room[2], room[3]
    doubts = 0
    begin = end = lo[first] if first < last else 0  # the rows up to which the two sums go
    totals = left = {zeros}
    i = first
    while i < last:
        size = min(STRIP, last - i)
        low = lo[i + size - 1]
        high = max(hi[i + size - 1], low)
        while size > 1 and (low - begin > STRIP or high - end > STRIP):
            size = (size + 1) // 2
            low = lo[i + size - 1]
            high = max(hi[i + size - 1], low)
        while low - begin > STRIP:  # a window that is far from the one before
            left = fill({inputs}, begin, STRIP, units, left, old)
            begin += STRIP
        while high - end > STRIP:
            totals = fill({inputs}, end, STRIP, units, totals, young)
            end += STRIP
        more = low - begin
        new = high - end
        left = fill({inputs}, begin, more, units, left, old)
        totals = fill({inputs}, end, new, units, totals, young)
        for k in range(size):
            low = lo[U(i + k)]
            high = max(hi[U(i + k)], low)
            rows[U(k)] = counts[U(high)] - counts[U(low)] if len(counts) else high - low
            g = U(high - end)
            h = U(low - begin)
            {set_gathered}
        begin += more
        end += new
        answers = out[i : i + size]
        for k in range(size):
            n = rows[U(k)]
            {row} = {get}
            found = answer(n, {row}, bounds, ddof)
            found = found if n >= fewest else 0.0
            doubts += found != found
            answers[U(k)] = found
        i += size
    return doubts
"""
