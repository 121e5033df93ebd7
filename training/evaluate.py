"""evaluate.py READER --base BASE.npz --on a2,b1: measure a reader on authors that it was not trained on.

READER is a checkpoint (.pt) or a reader (.onnx). Printed are precision (P) and recall (R) where a probability
exceeds a level, then the lowest thresholds that reach a precision. Choose thresholds on the file that will be used:
int8 shifts probabilities.
"""

import argparse
import os
import random

import numpy as np
import onnxruntime
import torch
from model import CATEGORY, HEADS, RELATION, WORTH, encode_pair, load_reader, load_tokenizer, pad
from train import NO_CATEGORY, files, pair_rows, sentence_rows

LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("reader")
    p.add_argument("--base", required=True, help="the tokenizer lies beside it")
    p.add_argument("--on", required=True, help="authors, with commas between them")
    p.add_argument("--batch", type=int, default=32)
    o = p.parse_args()
    torch.set_num_threads(os.cpu_count())
    tokenizer, only = load_tokenizer(o.base), set(o.on.split(","))
    ask = asking(o.reader)

    rows = list(sentence_rows(files("t1", only=only)))
    if rows:
        answers = predict(ask, [encode_pair(tokenizer, text, context) for text, context, *_ in rows], o.batch)
        worth, category = (np.array([row[n] for row in rows]) for n in (2, 3))
        report("worth", answers["worth"], worth, WORTH, united=[("lasting", "change")])
        thresholds(
            answers["worth"],
            worth,
            WORTH,
            [(("lasting", "change"), 0.90), (("lasting", "change"), 0.93), (("lasting", "change"), 0.95)],
        )
        known = category != NO_CATEGORY
        if "category" in answers and known.any():
            report("category", answers["category"][known], category[known], CATEGORY, levels=(0.0,))
            confusion(answers["category"][known], category[known])
    for title, t2, t3 in (
        ("relation, pairs (T2)", files("t2", only=only), []),
        ("relation, little lives (T3, all pairs)", [], files("t3", only=only)),
    ):
        rows = list(pair_rows(t2, t3, random.Random(0), negatives=99))
        if rows:
            answers = predict(ask, [encode_pair(tokenizer, a, b) for _, a, b, _ in rows], o.batch)["relation"]
            truth = np.array([label for *_, label in rows])
            report(title, answers, truth, RELATION)
            thresholds(answers, truth, RELATION, [((name,), p) for name in RELATION[1:] for p in (0.80, 0.90)])


def asking(path):
    """A function from ids and mask to the logits of each head."""
    if path.endswith(".onnx"):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = os.cpu_count()
        session = onnxruntime.InferenceSession(path, options)
        heads = [output.name for output in session.get_outputs() if output.name in HEADS]
        return lambda ids, mask: dict(
            zip(heads, session.run(heads, {"input_ids": ids.numpy(), "attention_mask": mask.numpy()}), strict=True)
        )
    net = load_reader(path)

    def ask(ids, mask):
        with torch.no_grad():
            return dict(zip(HEADS, (logits.numpy() for logits in net(ids, mask)), strict=True))

    return ask


def predict(ask, rows, size):
    """Probabilities (rows, classes) of each head."""
    order = sorted(range(len(rows)), key=lambda n: len(rows[n]))
    answers = {}
    for start in range(0, len(order), size):
        group = order[start : start + size]
        for head, logits in ask(*pad([rows[n] for n in group])).items():
            odds = np.exp(logits - logits.max(-1, keepdims=True))
            answers.setdefault(head, np.zeros((len(rows), logits.shape[1])))[group] = odds / odds.sum(-1, keepdims=True)
    return answers


def report(title, answers, truth, names, *, united=(), levels=LEVELS):
    chosen = answers.argmax(1)
    print(f"\n{title}: {len(truth)} rows, {np.mean(chosen == truth):.3f} right")
    for label in [(name,) for name in names] + list(united):
        columns = [names.index(name) for name in label]
        score, true = answers[:, columns].sum(1), np.isin(truth, columns)
        if levels == (0.0,):  # the likeliest class counts, whatever its probability
            score = np.isin(chosen, columns) * 1.0
        cells = "   ".join(
            "{}: P {:.2f} R {:.2f}".format(level or "likeliest", *precision_recall(score > level, true))
            for level in levels
        )
        print(f"  {'+'.join(label):16} {true.sum():5}   {cells}")


def precision_recall(said, true):
    hits = (said & true).sum()
    return hits / max(1, said.sum()), hits / max(1, true.sum())


def thresholds(answers, truth, names, wanted):
    """Print the lowest threshold of each label that reaches a precision."""
    for label, precision in wanted:
        columns = [names.index(name) for name in label]
        score, true = answers[:, columns].sum(1), np.isin(truth, columns)
        best = None
        for level in np.arange(0.99, 0.29, -0.01):
            reached, recall = precision_recall(score >= level, true)
            if reached >= precision and (score >= level).sum() >= 10:
                best = level, reached, recall
        said = "P {1:.3f} R {2:.3f} from {0:.2f}".format(*best) if best else "not reached"
        print(f"  threshold of {'+'.join(label)} for P >= {precision:.2f}: {said}")


def confusion(answers, truth):
    chosen = answers.argmax(1)
    pairs = {}
    for n in np.flatnonzero(chosen != truth):
        pair = f"{CATEGORY[truth[n]]} read as {CATEGORY[chosen[n]]}"
        pairs[pair] = pairs.get(pair, 0) + 1
    print(
        "  most confused: "
        + ", ".join(f"{pair} {count}" for pair, count in sorted(pairs.items(), key=lambda x: -x[1])[:6])
    )


if __name__ == "__main__":
    main()
