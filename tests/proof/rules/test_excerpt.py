"""What a report that kr makes of its sources shows (SPEC 3.7)."""
