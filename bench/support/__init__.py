"""What benches share: data sets, generated models, tables of results."""
