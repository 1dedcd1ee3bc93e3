"""Pipelines as they tell of themselves on `__penstock_spark`, and what is wanted of them.

    heard.py     follows the topic of a cluster, once for all viewers      sights.py   who may see which (pure)
    altering.py  who may stop and start them, and doing it                 here.py     those that ran on this machine

Imports `spark.progress`, which loads no Spark. The topic is read and written as the console: whoever could read it
would read of all pipelines. So a person is told of a pipeline only if every topic it reads is theirs to see, and may
stop or start it with ALTER on the groups of all its queries.
"""
