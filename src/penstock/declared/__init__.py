"""Files that users write in TOML: read key by key, with every mistake told at once and in its place.

Pipelines and agents are declared in files. Reading one never stops at the first mistake: each is noted with its line
and column and, where one can guess, what was meant. Pure; imports nothing of ours. Begin with `fields.py`.
"""
