"""How far what a source says is trusted (D7)."""

from memory.domain.policy_conversations import TrustPolicy


def trust_in(*, source: str, policy: TrustPolicy) -> float:
    """Return the trust in a source: human, ai, interaction, ingest or dream."""
    trust: float = getattr(policy, source)
    return trust
