"""show: answers, models and reports in, what a notebook draws and a data frame holds out."""
