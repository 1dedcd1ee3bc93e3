"""The properties as data: one module per theme, one row per property, nothing else.

Names, types, defaults, bounds, importance and update modes are Kafka 4.3.1's; the words are ours. A row's `effect`
must stay honest: change it in the same commit that makes the node act on the property.
"""
