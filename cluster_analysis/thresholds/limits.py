"""The limits of what is reported at all. No option changes them; tests may."""

from __future__ import annotations

from msgspec import Struct

from cluster_analysis.thresholds.common import FEWEST_PEERS, TOLERANCE_SHARE, TWICE
from cluster_analysis.thresholds.judging import LINK_EFFECT
from cluster_run.findings import CRITICAL_COST_SHARE, WARNING_COST_SHARE


class Thresholds(Struct, frozen=True):
    """Defaults measured on real captures and on the benchmark; see docs/how-it-decides.md."""

    #: Largest p-value of a listed suspect in a healthy job: a rank over all ranks, a host by itself.
    listed_p_value: float = 0.01
    #: A host that would cost what leaves the question open need be no more improbable than this.
    doubted_p_value: float = 0.05
    #: With fewer peers than this a rank is not compared, only described.
    min_peers: int = FEWEST_PEERS
    #: Scale floors: peers agree to 0.05-1 % in healthy jobs, of computing or of the step; a tighter scale is
    #: chance. In single steps, and of links, to the second.
    floor: float = 0.002
    floor_single: float = 0.01
    #: Smallest effects worth a line: a device's computing time, a link's time, local time as share of step.
    device_effect: float = 0.02
    link_effect: float = LINK_EFFECT
    local_effect_share_of_step: float = WARNING_COST_SHARE
    #: With fewer steps a deviation may be a bad moment: floors are widened.
    min_steps_confident: int = FEWEST_PEERS
    #: With fewer steps than this nothing comes and goes, or grows.
    min_steps_intermittent: int = 5
    #: When one or two steps are all there is: idle time that is news in them, in multiples of the peers',
    #: and computing that is, whatever the gaps say.
    single_step_idle_factor: float = 3.0
    single_step_device_effect: float = 0.2
    #: Suspects not confirmed in them that cost this share of the step leave the question open.
    open_cost_share: float = CRITICAL_COST_SHARE
    #: Largest probability of an alarm in a healthy job, over all its ranks, for each share of the step that
    #: it costs: one in 400 at 1 %, one in 40 at 10 %. Intermittent idle time ignores the cost: the second
    #: one counts. A host that is as improbable as the third hides its ranks.
    chance_per_cost: float = 0.25
    alarm_p_value: float = 1e-3
    costly_p_value: float = 5e-3
    sure_cost_share: float = 0.01
    #: An alarm costs this many times what "repairing" a healthy rank seems to save.
    placebo_factor: float = TWICE
    #: One healthy device in a hundred has a long tail (Sinha et al., SC'22): its share, its mean, and what
    #: hardly any exceeds. The more ranks, the slower the slowest healthy one.
    natural_share: float = 0.01
    natural_tail: float = 0.01
    natural_effect: float = 0.08
    #: Shares from which waiting for input (of the step) and for the host (of local time) is the job's trait.
    input_bound_share: float = CRITICAL_COST_SHARE
    #: Share of the step from which on communication beside no computing is a finding of its own.
    exposed_share: float = 0.3
    host_bound_share: float = 0.2
    #: When merging operators of one kind in a group and step is worth it: largest size, fewest, least cost.
    small_bytes: float = 2e6
    small_count: int = 100
    small_share: float = sure_cost_share
    #: Replay error above which costs are only bounds, and no job is healthy. Where that of the mean step
    #: is larger, costs have low confidence: to refuse them would have lost two in 216 development jobs, which
    #: were right within 2.1 % of the step.
    replay_refuse: float = TOLERANCE_SHARE
    #: The mean replayed step differs from the mean measured one by no more, or no cost has high confidence.
    replay_mean_doubt: float = 0.02
    #: Rows below the cost of a warning that are listed at most.
    max_info: int = 5
    #: Spread of computing between stages that is worth explaining.
    stage_effect: float = TOLERANCE_SHARE
