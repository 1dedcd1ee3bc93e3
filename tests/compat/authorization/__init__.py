"""Who is told what: the same question of the same user to Apache Kafka and to us, with the same rights on both.

`cast.py` says who there is, with one ACL each; `nodes.py` starts both brokers secured alike; `state.py` makes on both
what questions are about, and makes it anew after a question that changed it; `questions.py` has what is asked of each
API; `pair.py` asks both as somebody; `deviations.py` says where the answers may differ, and where the limits page says
so; `sessions.py` draws fetch sessions that several users share; `members.py` has them join groups by a pattern;
`unanswered.py` has them produce without acks; `paths.py` runs our node with its short way on or off.
"""
