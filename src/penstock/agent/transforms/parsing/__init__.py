"""parse: from texts to fields. One module for each form, each a function over a whole list of texts.

A parser returns the fields of each text, empty where it failed, and by place why it did. It raises for none of them.
Begin with `parser.py`, then `parse.py`, the step.
"""
