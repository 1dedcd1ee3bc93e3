"""`sasl.jaas.config`, the line with which Kafka's users say how to log in, read as Kafka reads it.

`tokens.py` cuts the text as Java's StreamTokenizer does, `entry.py` makes the one entry of it, `logins.py` knows what
the login modules mean by their options. Classes are a fixed table: nothing is ever loaded by its name.
"""
