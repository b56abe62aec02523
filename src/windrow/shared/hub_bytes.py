"""A hub as bytes: its queries, and the rows that they can still reach."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from windrow.aggregates import REGISTRY, Aggregate, codec
from windrow.aggregates.codec import Reader, count_bytes
from windrow.aggregates.schema import Schema, frame, unframe
from windrow.errors import BadBytes, BadSpecification, WindrowError
from windrow.shared.line import Window
from windrow.shared.query import EACH, as_key, make_query
from windrow.shared.substream import Substream
from windrow.slides import Rows, Time
from windrow.times import Duration

if TYPE_CHECKING:
    from windrow.shared.hub import Hub

_OWNER = Schema.single("value").fingerprint("Hub")


def write(hub: "Hub") -> bytes:
    """Everything needed to go on."""
    head = (
        hub._unit,
        None if hub._idle is None else _length(hub._idle),
        hub._names,
        hub.clock.example,
        tuple(hub.clock.times()),
        hub.clock.first,
        hub.clock.end,
        hub._advanced,
        hub._lost,
        hub._lost_at,
    )
    out = [codec.encode(head), count_bytes(len(hub._queries))]
    for query in hub.queries:
        key = ("each",) if query.key is EACH else ("key", query.key)
        out.append(codec.encode((query.number, _named(query.aggregate), _shape(query.window), key)))
    out += _stream(hub._whole_stream())
    out.append(count_bytes(len(hub._keys)))
    for key in hub.keys:
        stream = hub.substream(key)
        assert stream is not None
        out += [codec.encode(key), *_stream(stream)]
    return frame(b"h", _OWNER, b"".join(out))


def read(hub: "Hub", data: bytes, own: Iterable[type[Aggregate]]) -> None:
    """Fill an empty hub."""
    reader = unframe(b"h", _OWNER, data, "Hub")
    known = {kind.__name__: kind for kind in (*REGISTRY.values(), *own)}
    try:
        _read(hub, reader, known)
    except (BadBytes, BadSpecification):
        raise
    except (ValueError, KeyError, TypeError, ArithmeticError, WindrowError) as error:
        raise BadBytes(f"Hub: the bytes do not describe one: {error}") from error
    if reader.remaining():
        raise BadBytes(f"Hub: {reader.remaining()} bytes too many")


def _read(hub: "Hub", reader: Reader, known: dict[str, type[Aggregate]]) -> None:
    hub._unit, idle, names, example, times, *more = codec.decode(reader)
    first, end, hub._advanced, hub._lost, hub._lost_at = more or (0, len(times), None, False, None)
    hub._idle = None if idle is None else _as_length(idle)
    hub._names = names
    hub.clock._unit = hub._whole.line._unit = hub._unit
    hub.clock.restore(first, example, times, end - first)
    for _ in range(reader.count()):
        number, named, shape, key = codec.decode(reader)
        about = EACH if key[0] == "each" else as_key(key[1])  # a NaN is the one that keys have
        query = make_query(number, _made(named, known), _window(shape), about)
        hub._queries.add(query)
    _read_stream(hub, None, reader)
    for _ in range(reader.count()):
        _read_stream(hub, as_key(codec.decode(reader)), reader)


def _stream(stream: Substream) -> list[bytes]:
    line = stream.line
    known = (line.newest, line.lost, line.gone)
    out = [codec.encode((line.first, line.end, line.example, tuple(line.times()), *known))]
    for held in stream.held.values():
        first = max(held.start, line.first)
        rows = [held.structure.row(number) for number in range(first, line.end)]
        out.append(codec.encode((held.start, held.structure.families())))
        out.append(held.choice.part.partial_schema.write(rows))
    return out


def _read_stream(hub: "Hub", key: Any, reader: Reader) -> None:
    stream = hub._whole if key is None else Substream(hub._unit)
    line = stream.line
    first, end, example, times, *more = codec.decode(reader)
    newest, line.lost, line.gone = more or (None, False, None)
    line.restore(first, example, times, end - first, newest)
    stream.follow(hub._queries.plan(key), hub._queries.version)
    for held in stream.held.values():
        held.start, families = codec.decode(reader)
        rows = held.choice.part.partial_schema.read(reader)
        begin = max(held.start, first)
        if begin + len(rows) != end:
            raise BadBytes(f"Hub: {len(rows)} rows of {held.choice.part!r}, not {end - begin}")
        held.structure.begin(begin)
        for number, partial in enumerate(rows, begin):
            held.structure.push(partial, times[number - first] if times else None)
        held.structure.remember(families)
    if key is not None:
        hub._keys[key] = stream


def _named(aggregate: Aggregate) -> tuple[Any, ...]:
    kind = type(aggregate)
    options = tuple(aggregate.options().items())
    return kind.__name__, aggregate.columns, aggregate._alias, options, aggregate.identification


def _made(named: tuple[Any, ...], known: dict[str, type[Aggregate]]) -> Aggregate:
    name, columns, alias, options, identification = named
    if name not in known:
        raise BadSpecification(
            f"the bytes have a query of {name}, which is not windrow's: "
            f"Hub.from_bytes(data, own=[{name}])"
        )
    made = known[name](*columns, **dict(options))
    if made.identification != identification:
        raise BadBytes(f"Hub: {name} is another now than when it was written")
    return made.alias(alias) if alias else made


def _length(length: Duration | int) -> Any:
    return (length.nanoseconds, length.label) if isinstance(length, Duration) else length


def _as_length(given: Any) -> Duration | int:
    return Duration(*given) if isinstance(given, tuple) else int(given)


def _shape(window: Window) -> tuple[Any, ...]:
    if isinstance(window, Rows):
        within = None if window.within is None else _length(window.within)
        return "rows", window.n, window.ending, within
    return "time", _length(window.length), window.closed, _length(window.ending)


def _window(shape: tuple[Any, ...]) -> Window:
    if shape[0] == "rows":
        within = None if shape[3] is None else _as_length(shape[3])
        return Rows(shape[1], shape[2], within=within)
    return Time(_as_length(shape[1]), shape[2], _as_length(shape[3]))
