"""Kernels of the filters: arrays only, no pointers, as section 5 of the paper asks."""
