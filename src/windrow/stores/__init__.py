"""Where a big window lives: bytes under keys, in memory, in RocksDB or in Redis."""

from typing import TYPE_CHECKING, Any

from windrow.stores.base import Memory, Store

if TYPE_CHECKING:
    from windrow.stores.redis import Redis
    from windrow.stores.rocks import Rocks


if not TYPE_CHECKING:  # a checker would believe that every name is there

    def __getattr__(name: str) -> Any:
        if name == "Rocks":  # loaded when used: each needs a package of its own
            from windrow.stores.rocks import Rocks

            return Rocks
        if name == "Redis":
            from windrow.stores.redis import Redis

            return Redis
        raise AttributeError(f"module 'windrow.stores' has no attribute {name!r}")


__all__ = ["Memory", "Redis", "Rocks", "Store"]
