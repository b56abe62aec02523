"""``windrow demo``: a year of New York flights on a table, on a stream and in this process."""
