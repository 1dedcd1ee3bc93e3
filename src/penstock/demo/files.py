"""What the agent and the pipeline of the demo are told to do: two files that one may take as a start. Pure."""

from __future__ import annotations

from penstock.demo.plan import AGENT, INPUT, LETTERS, MINUTES, PIPELINE, TABLE, TOPIC
from penstock.demo.traffic import PATTERN, SCHEMA


def agent_file(bootstrap: str, client_config: str) -> str:
    return f"""\
# An agent: files → topics. `penstock agent run -c agent.toml` runs it.
name = "{AGENT}"
bootstrap = "{bootstrap}"
state_dir = "agent"
exactly_once = true              # lines and how far they were read go in one transaction: what dies with it comes again
machine_id = "demo"              # else the machine's own

[output]
client_config = "{client_config}"  # TLS, and a user with the rights of an agent

[inputs.{INPUT}]
type = "tail"
paths = ["web/access.log*"]      # and what rotation makes of it, compressed or not: no line is read twice
topic = "{TOPIC}"
headers = ["host", "path"]
"""


def pipeline_file(bootstrap: str, client_config: str) -> str:
    return f"""\
# A pipeline: topics → tables and topics, on Spark. `penstock pipeline run pipeline.toml` runs it.
name = "{PIPELINE}"
bootstrap = "{bootstrap}"
warehouse = "lake"

[kafka]
"client.config" = "{client_config}"  # TLS, and a user with the rights of a pipeline

[spark]
master = "local[2,4]"
settings."spark.driver.memory" = "1g"
settings."spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # it starts quicker

[sources.access]
topic = "{TOPIC}"
format = "regex"
schema = "{SCHEMA}"
start = "earliest"
dead_letters = "topic:{LETTERS}"  # what the pattern does not fit, with where it comes from and why
options = {{ metadataColumns = "_topic,_partition,_offset", "value.regex.pattern" = '''{PATTERN}''' }}

[sinks.lake]                     # one row a line, each exactly once
from = "access"
table = "{TABLE}"
partition_by = ["day"]
trigger = "2 seconds"

[sources.requests]               # the same topic for the sums; the table's source has told what is broken
topic = "{TOPIC}"
format = "regex"
schema = "{SCHEMA}"
start = "earliest"
dead_letters = "drop"
watermark = {{ column = "time", delay = "30 days" }}  # much: the log's clock runs a thousand times too fast
options = {{ "value.regex.pattern" = '''{PATTERN}''' }}

[[steps]]
name = "per_minute"
sql = '''
SELECT date_format(window.start, "yyyy-MM-dd'T'HH:mm") AS minute, count(*) AS requests,
       count_if(status >= 500) AS failed, sum(bytes) AS bytes, round(max(took_s), 3) AS slowest_s
FROM requests GROUP BY window(time, '1 minute')
'''

[sinks.minutes]                  # the newest record of a minute is its sum so far
from = "per_minute"
topic = "{MINUTES}"
key = "minute"
mode = "update"
trigger = "3 seconds"
exactly_once = true              # each batch in transactions: those who read committed records see each sum once
"""
