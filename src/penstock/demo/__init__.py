"""`penstock dev --demo`: logs → agent → topics → Spark → table and topics on this machine, with two crashes, checked.

    the stage    plan.py sizes, names and moments; files.py what the agent and the pipeline are told to do
    the log      traffic.py a day of requests as lines; rotating.py a file that logrotate keeps; writing.py the process
                 that writes and counts
    the actors   processes.py what was started and how it ends; nodes.py what the demo asks of a cluster; stage.py all
                 of them in one folder
    the show     sight.py what is seen at one moment; watching.py who looks; screen.py and lines.py how it is shown;
                 story.py what happens, in order
    the proof    evidence.py what was found at the end; gathering.py who fetches it; checks.py what must be true of it;
                 measures.py how fast it was; planting.py faults that the checks must find
    the end      chart.py bars; summary.py what is told; running.py all of it, with an exit code

May import every room below; the cluster's processes come from the command line, which is above, through `nodes.py`.

Invariants: what is written is counted by the writer alone, and what arrived is read back from the table, the topics and
their offsets, never from what the view has seen. Every process that is started ends with the demo, whatever happens,
unless it is asked to stay. Nothing is signalled that was not started here.

Read `story.py` first, then `checks.py`.
"""
