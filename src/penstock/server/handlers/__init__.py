"""One module per API key, named after it: `handle(ctx, request)`; `server/doors.py` says what it may return.

Of the server they import `doors` and nothing that runs: never each other, drivers, asyncio or sockets. What they need
stands behind `ctx.node`, what several of them share is in `shared`. Each asks `ctx.allow` before it acts. Read
`produce.py` first.
"""
