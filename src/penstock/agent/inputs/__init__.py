"""Where events come from. One package or module for each kind; they know nothing of each other.

An input is made from its settings and a `Channel`, and does three things: `run` takes events in and puts portions into
the channel until it is stopped, `stop` ends the taking-in in order, `status` tells how it goes. An input that fails
raises out of `run`; the agent says so and starts it again after a while. Begin with `input.py`.
"""
