//! Which flow goes first, where one end decides for many: pHost's ends and Fastpass's arbiter.

use crate::parameters::Parameters;

/// Which flows are served first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    ShortestRemaining,
    EarliestDeadline,
    TenantRoundRobin,
    TenantLeastRecent,
}

impl Policy {
    pub fn has_tenants(self) -> bool {
        matches!(self, Policy::TenantRoundRobin | Policy::TenantLeastRecent)
    }
}

/// Who goes first, at both ends.
const POLICIES: &[(&str, &str)] = &[
    ("shortest-remaining", "the flow with the fewest remaining packets"),
    (
        "earliest-deadline",
        "the flow with the earliest deadline; flows without a deadline come last, the shortest \
                           first",
    ),
    ("tenant-round-robin", "tenants (groups of flows) in turn, and of each tenant its shortest flow"),
    ("tenant-least-recent", "the shortest flow of the tenant that was served least recently"),
];

/// Reads `policy`: who is served first.
pub fn policy(p: &mut Parameters, help: &'static str) -> Policy {
    named(p.choice("policy", "shortest-remaining", POLICIES, help))
}

/// Reads a policy of its own for one end, `other` without it.
pub fn policy_or(p: &mut Parameters, key: &'static str, other: Policy, help: &'static str) -> Policy {
    p.choice_or_auto(key, POLICIES, help).map_or(other, named)
}

fn named(name: &str) -> Policy {
    match name {
        "earliest-deadline" => Policy::EarliestDeadline,
        "tenant-round-robin" => Policy::TenantRoundRobin,
        "tenant-least-recent" => Policy::TenantLeastRecent,
        _ => Policy::ShortestRemaining,
    }
}
