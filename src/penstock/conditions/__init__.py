"""Conditions on the fields of an event: `status >= 500 and not path matches "^/health"`.

Text → `grammar.parse` → a tree of frozen nodes → `meaning.compile_condition` → a function of an event's fields. Pure;
a mistake is told with its place in the text. Agents and searches in the console share them. Begin with `nodes.py`.
"""
