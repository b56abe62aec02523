"""Tables looked at: few numbers, whatever their size, from which a report is drawn."""
