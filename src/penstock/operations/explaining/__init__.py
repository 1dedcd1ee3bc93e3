"""Why a group is behind, in words with numbers: facts in, findings out, the worst of them first.

    sights.py    what a group and its partitions look like at one moment, and what is known besides (pure data)
    paces.py     what two sights tell: records a second in and out, time until there is no lag (pure)
    members.py   findings about who reads: nobody, rebalances, who does not commit, who has nothing to do (pure)
    partitions.py   findings about what is read: stuck, held back, lost, hot, without a leader (pure)
    pace.py      findings about how fast: slower than producers, than it was, draining, limited (pure)
    explain.py   all of them in their order, and one sentence about the whole (pure)
    looking.py   asks an Admin, several times over a span, everything that the rest wants to know

`penstock group explain` looks for ten seconds; the console hands in what its sampler saw. Read `sights.py` first.
"""
