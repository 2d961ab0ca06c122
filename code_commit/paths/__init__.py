"""Which paths an answer may name, which are protected, and which look like somebody's secret."""
