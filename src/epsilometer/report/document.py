"""The machine-readable result: one object with a schema version."""

from __future__ import annotations

from typing import Any

from epsilometer.auditing import AuditResult
from epsilometer.json_values import SCHEMA, json_values
from epsilometer.report.details import details_of
from epsilometer.report.headline import headline_of
from epsilometer.versions import versions


def to_json(result: AuditResult) -> dict[str, Any]:
    """An audit as plain data, ready for `json.dumps`."""
    plan, verdict, limit = result.plan, result.verdict, result.noise_limit
    headline = headline_of(result)
    document = {
        "kind": plan.kind,
        "schema": SCHEMA,
        "headline": str(headline),
        "quote": headline.quote,
        "verdict": verdict.outcome.value,
        "reason": verdict.reason,
        "refuted": verdict.refuted,
        "power": verdict.power,
        "blind_spot": verdict.blind_spot,
        "claim": {**plan.claim.to_dict(), "epsilon": plan.claimed_epsilon, "delta": plan.delta},
        "upper_bound": result.upper_bound and result.upper_bound.to_dict(),
        "lower_bound": result.lower_bound.to_dict(),
        "family_bound": result.family_bound and result.family_bound.to_dict(),
        "claim_test": result.test.to_dict(),
        "noise_multiplier": {
            "claimed": plan.promise.noise_multiplier,
            "limit": limit and limit.to_dict(),
        },
        "trials": result.evidence.sizes,
        "stopped_early": result.stopped_early,
        "seconds": round(result.seconds, 3),
        "seed": plan.seed,
        "faults": plan.to_dict().get("faults", {}),
        "plan": plan.to_dict(),
        "plan_sha256": plan.fingerprint(),
        "versions": versions(),
        **details_of(result),
    }
    converted: dict[str, Any] = json_values(document)
    return converted
