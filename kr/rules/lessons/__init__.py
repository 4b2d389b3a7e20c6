"""Pure rules of lessons (SPEC 4): the line format, what is injected, which events happened, how they are told."""
