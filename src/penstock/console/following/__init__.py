"""The way of one record: from its file to its topic, to who has read it, to the row that it became or why it did not.

way.py      what was found, as steps (pure)     letters.py   where a record that became no row was put aside
rows.py     the row itself, where the table keeps where its rows are from
"""
