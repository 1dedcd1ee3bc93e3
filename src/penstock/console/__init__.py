"""The web console: one process that looks at clusters for any number of browsers, and acts for the person at each.

    serving.py   a socket, samplers, a server, their end   app.py     guards, routes and pages as one application
    settings.py  what it is told, and what it refuses      guards.py  Host, CSRF, headers, sizes of bodies
    sampler/     looks at a cluster, once for all          views/     pure: from what was seen to a page's data
    routes/      a module a page's data                    stream/    the event stream of each tab
    people/      who asks, and what they may see           shell.py   the files of the front end, built into a folder
    lakeside.py  what there is beside brokers: tables/, pipelines/, agents/, following/

May import spark, agent, client, operations, conditions and below; starlette and uvicorn come with the extra `console`.
Invariants: a page never makes a cluster-wide request by itself, the sampler does; 64-bit numbers leave as text; nothing
that one person saw is shown to another who may not see it; whatever is held for a viewer has a bound. Read `app.py`
first.
"""
