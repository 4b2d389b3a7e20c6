"""Pure decisions: values in, values out. No clock, no file, no network."""
