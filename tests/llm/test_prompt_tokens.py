"""B9: what a question costs in words is watched, over a fixed set of questions."""

from benchmarks.prompt_tokens import count_by_purpose, fixed_questions

VERDICT_BAR, READING_BAR, TOGETHER_BAR = 33.0, 420.0, 5_900  # 30.4, 375.7 and 5,742 when they were set


def test_a_verdict_a_reading_and_all_questions_cost_no_more_than_they_did() -> None:
    """B9: at four bytes a token, prompts and replies together; every reply is one that is accepted."""
    counted = count_by_purpose(questions=fixed_questions())
    for purpose, bar in (("classify", VERDICT_BAR), ("read", READING_BAR)):
        _, answers, sent, received = counted[purpose]
        assert (sent + received) / answers <= bar
    assert sum(row[2] + row[3] for row in counted.values()) <= TOGETHER_BAR
