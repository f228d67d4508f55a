"""Lists of records: rows in columns under a header, one of them selected."""
