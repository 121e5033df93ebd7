"""B9: what a question costs in words is watched, over a fixed set of questions."""

from benchmarks.prompt_tokens import count_by_purpose, fixed_questions

VERDICT_BAR, TOGETHER_BAR = 33.0, 5_600  # 30.4 and 5,463 when they were set


def test_a_verdict_and_all_questions_cost_no_more_than_they_did() -> None:
    """B9: at four bytes a token, prompts and replies together; every reply is one that is accepted."""
    counted = count_by_purpose(questions=fixed_questions())
    _, answers, sent, received = counted["classify"]
    assert (sent + received) / answers <= VERDICT_BAR
    assert sum(row[2] + row[3] for row in counted.values()) <= TOGETHER_BAR
