"""One module per API key, named after it, and the messages that travel inside others.

Modules are imported when first asked for (`registry.api(key).request()`), because making all classes takes long.
"""
