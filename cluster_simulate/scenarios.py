"""How scenarios are written, for --help."""

from __future__ import annotations

SCENARIO_HELP = """\
A scenario is KIND:SEVERITY@PLACE,KEY=VALUE,...; severity, place and keys may be left out.
Without a place the simulator draws one. Several scenarios make a job with several faults.

  slow_rank:1.25@5            rank 5 computes 1.25 times as long
  slow_rank:1.05@5,cause=dispatch   rank 5 idles 5 % of a step more (cause=input: starts late by that)
  slow_rank:1.3@5,op=vector   only its vector operators (or op=cube)
  slow_rank:1.3@5,pattern=intermittent,duty=0.3   in 3 of 10 steps (pattern=trend: grows; transient: one)
  slow_host:1.05@2            host 2 (counted from 1) idles 5 % of a step more; cause=dispatch|input|compute
  slow_link:2@7-11            the link between ranks 7 and 11 takes twice as long; dir=one: only 7 to 11
  slow_nic:3@5                all RDMA of rank 5; dir=tx|rx: one way; via=hccs: its links inside the host
  slow_host_pair:2@1-2        all RDMA between hosts 1 and 2
  slow_uplink:2@1             all RDMA of host 1 (of hosts 1 and 3: @1+3)
  retransmission:4000@7-11    one operator over that link lasts 4000 ms more, once
  periodic_pause:80@5,every=2 rank 5 pauses 80 ms every 2 steps (@all: every rank)
  stage_imbalance:1.4         the last stage has 1.4 times the work
  data_imbalance:0.2          micro-batches differ by sigma 0.2
  expert_imbalance:0.2        experts' loads differ by sigma 0.2 (needs --ep)
  small_packets:400           gradients are reduced in 400 pieces
  input_bound:80              every rank waits about 80 ms for its data at each step
  host_bound:0.35             every rank idles 0.35 of its computing time between operators
"""
