"""The report: its template, its passages, their ranking, its summary. Pure."""
