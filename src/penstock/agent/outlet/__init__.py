"""From parcels to acknowledged records: memory, the producer, the spool, and what can never be sent.

    Channel ──Shipment──▶ Lane (one for each input, in order) ──▶ producer ──▶ brokers
                            └──▶ spool while brokers are silent, drained before anything newer

Invariants: a shipment is settled once, when each of its records is acknowledged, in the spool, in dead letters, or
counted as unsendable; shipments of a lane are handed to the producer in order, and nothing newer is while an older one
has to be handed over again; what is held in memory stays within `output.memory`, and no input can take what others are
entitled to. No task runs for a shipment: deliveries wake the lane. Reaches brokers through `client` only. Begin with
`outlet.py`, then `lane.py`.
"""
