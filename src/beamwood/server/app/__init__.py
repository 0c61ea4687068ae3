"""What a request means: routes, schema, access, answers, metrics. Knows no socket and no process."""
