"""format("penstock-lake"): tables of Delta and Iceberg, whose commits carry rows and the offsets they come from."""
