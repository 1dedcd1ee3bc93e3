"""One module per API key, named after it: `handle(ctx, request)`, see `server/context.py` for what it may return.

Handlers never import each other, drivers, asyncio or sockets; what they need stands behind `ctx.node`. Each asks
`ctx.allow` before it acts. Read `produce.py` first.
"""
