"""Compiled counters: one at a time, and banks of millions."""
