"""train.py OUT.pt --base BASE.npz [--start READER.onnx] [--hold a2,b1]: train the reader on data/ (T1, T2, T3).

Who speaks gets another name at each epoch, since a net learns names by heart. Vectors are kept near the base's.
--hold leaves authors out, for evaluate.py to measure on.
"""

import argparse
import collections
import glob
import json
import os
import random
import re
import time

import torch
import torch.nn as nn
from model import CATEGORY, RELATION, WORTH, encode_pair, load_reader, load_tokenizer, pad
from torch.nn import functional

HERE = os.path.dirname(os.path.abspath(__file__))
NO_CATEGORY = -100  # what cross_entropy leaves out
RELATION_WEIGHTS = [1.0, 1.5, 1.5, 2.0]
WARM_UP = 0.06  # share of the run in which the rate rises


def main():
    o = arguments()
    random.seed(o.seed)
    torch.manual_seed(o.seed)
    torch.set_num_threads(o.threads)
    tokenizer = load_tokenizer(o.base)
    hold, known = (set(filter(None, authors.split(","))) for authors in (o.hold, o.known))
    new = {author(path) for kind in ("t1", "t2", "t3") for path in files(kind)} - hold - known
    shares = ((new, 1.0), (known - hold, o.share))
    worth, texts = read_texts(tokenizer, hold)
    teacher, net = Teacher(o.base, tokenizer, texts), load_reader(o.start or o.base)
    losses = Losses([category for rows in worth.values() for _, (_, category) in rows])
    if "category" in net.untrained:
        fit_category(net, [row for rows in worth.values() for row in rows], losses.category)
    optimizer, trained = optimizer_of(net, o)
    rates = [group["lr"] for group in optimizer.param_groups]

    steps = step = 0
    begun = time.time()
    net.train()
    progress = 0.0
    for epoch in range(o.epochs):
        if progress >= 1:
            break
        work = batches_of(epoch, shares, worth, tokenizer, teacher, o)
        steps = steps or len(work) * o.epochs
        for kind, (ids, mask, labels) in work:
            # The rate falls with the clock where --minutes would be over before the epochs are.
            progress = max(step / steps, (time.time() - begun) / (60 * o.minutes))
            if progress >= 1:
                break
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * min((progress + 1 / steps) / WARM_UP, max(0.02, (1 - progress) / (1 - WARM_UP)))
            loss = losses.of(net, kind, ids, mask, labels)
            drift = teacher.drift(net)
            optimizer.zero_grad(set_to_none=True)
            (loss + o.drift * drift).backward()
            nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
            step += 1
            if step % 50 == 0:
                seconds = time.time() - begun
                print(
                    f"epoch {epoch} step {step} of {steps} {losses} drift {drift.item():.4f} {seconds:.0f} s",
                    flush=True,
                )
        torch.save(net.state_dict(), o.out)


def read_texts(tokenizer, hold):
    """Encoded sentences of T1 by file, with their labels, and all texts whose vectors are kept near the base's."""
    worth, texts = {}, []
    for path in files("t1", hold=hold):
        rows = list(sentence_rows([path]))
        worth[path] = [(encode_pair(tokenizer, text, context), labels) for text, context, *labels in rows]
        texts += [text for text, *_ in rows]
    texts += [row[side] for row in lines(files("t2", hold=hold)) for side in "ab"]
    texts += [b["t"] for row in lines(files("t3", hold=hold)) for b in row["beliefs"] + row["later"]]
    return worth, texts


def optimizer_of(net, o):
    """The optimizer, whose heads learn ten times as fast as the layers that are not frozen, and what it trains."""
    for module in (net.encoder.embeddings, *net.encoder.encoder.layer[: o.frozen]):
        module.requires_grad_(False)
    heads = [q for name, q in net.named_parameters() if not name.startswith("encoder.")]
    body = [q for name, q in net.named_parameters() if name.startswith("encoder.") and q.requires_grad]
    groups = [{"params": body, "lr": o.rate}, {"params": heads, "lr": o.rate * 10}]
    return torch.optim.AdamW(groups, weight_decay=0.01), body + heads


def batches_of(epoch, shares, worth, tokenizer, teacher, o):
    """The batches of an epoch in random order: (kind, (ids, mask, labels))."""
    rng, rows, sentences = random.Random(epoch + o.seed), [], []
    for authors, share in shares:
        t1, t2, t3 = (files(kind, only=authors) for kind in ("t1", "t2", "t3"))
        rows += part(list(pair_rows(t2, t3, rng, negatives=o.negatives, partial=2, near=teacher.near)), share, rng)
        rows += part(list(stray_pairs(t2, rng, near=teacher.near)), share * o.strays, rng)
        rows += part(list(told_again(t3, rng)), share, rng)
        sentences += part([row for path in t1 for row in worth[path]], share, rng)
    pairs = [(encode_pair(tokenizer, *renamed(who, a, b)), [label]) for who, a, b, label in rows]
    work = [("pair", x) for x in batches(pairs, o.batch)] + [("sentence", x) for x in batches(sentences, o.batch)]
    random.shuffle(work)
    count = dict(collections.Counter(RELATION[label] for _, (label,) in pairs))
    print(f"{len(sentences)} sentences, {len(pairs)} pairs {count}, {len(work)} steps in epoch {epoch}", flush=True)
    return work


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out")
    p.add_argument("--base", required=True, help="the encoder (.npz), tokenizer.json beside it")
    p.add_argument("--start", help="a reader to go on from (.pt, .onnx) instead of the bare base")
    p.add_argument("--hold", default="", help="authors that are left out")
    p.add_argument("--known", default="", help="authors that --start has learnt")
    p.add_argument("--share", type=float, default=0.5, help="part of the known authors' data that an epoch takes")
    p.add_argument("--epochs", type=int, default=6)
    p.add_argument("--minutes", type=float, default=600, help="the longest that training may take")
    p.add_argument(
        "--negatives", type=int, default=4, help="unrelated beliefs for each later sentence of a little life"
    )
    p.add_argument(
        "--strays", type=float, default=0.7, help="part of the T2 sentences that meet a belief of another pair, too"
    )
    p.add_argument("--batch", type=int, default=24)
    p.add_argument("--rate", type=float, default=1e-4)
    p.add_argument(
        "--frozen", type=int, default=4, help="lowest layers that stay as they are, the embeddings with them"
    )
    p.add_argument("--drift", type=float, default=4.0, help="how strongly vectors are kept near the base's")
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--seed", type=int, default=1)
    return p.parse_args()


def part(rows, share, rng):
    return rng.sample(rows, round(len(rows) * share))


def fit_category(net, rows, weight, *, steps=100):
    """Fit the category head to the encoder as it stands, so that training does not begin with a guess."""
    rows = sorted((row for row in rows if row[1][1] != NO_CATEGORY), key=lambda row: len(row[0]))
    with torch.no_grad():
        groups = [rows[n : n + 32] for n in range(0, len(rows), 32)]
        pooled = torch.cat([net.pooled(*pad([ids for ids, _ in group])) for group in groups])
    truth = torch.tensor([category for _, (_, category) in rows])
    optimizer = torch.optim.AdamW(net.category.parameters(), lr=0.02, weight_decay=0.1)
    for _ in range(steps):
        loss = functional.cross_entropy(net.category(pooled), truth, weight=weight, label_smoothing=0.03)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    right = (net.category(pooled).argmax(1) == truth).float().mean()
    print(f"category head fitted: loss {loss.item():.3f}, {right:.3f} right", flush=True)


def files(kind, *, hold=(), only=None):
    """Files of `kind` (t1, t2, t3) by all authors but `hold`, or by `only`."""
    found = sorted(glob.glob(f"{HERE}/data/*.{kind}*.jsonl"))
    return [path for path in found if (author(path) in only if only is not None else author(path) not in hold)]


def author(path):
    return os.path.basename(path).split(".")[0]


def lines(paths):
    for path in paths:
        with open(path, encoding="utf-8") as file:
            yield from (json.loads(line) for line in file)


def sentence_rows(paths):
    """(sentence, its message with what was said before, worth, category) of T1."""
    for row in lines(paths):
        whole = " ".join(s["t"] for s in row["sentences"])
        before = f" | before: {row['prev']}" if row.get("prev") else ""
        context = f"{'user' if row['by'] == 'user' else 'assistant'}: {whole}{before}"
        for s in row["sentences"]:
            yield s["t"], context, WORTH.index(s["y"]), CATEGORY.index(s["c"]) if "c" in s else NO_CATEGORY


def pair_rows(t2, t3, rng, *, negatives, partial=1, near=None):
    """(who, belief, later sentence, relation) of T2 and T3.

    T3 holds `negatives` unrelated beliefs for each sentence, half of them the nearest by `near`, a function of two
    texts: a reader is asked about the nearest. Pairs that are PARTIAL come `partial` times.
    """
    for row in lines(t2):
        pair = row["who"], spoken(row["who"], row["a"]), f"{row['who']}: {row['b']}", RELATION.index(row["y"])
        yield from [pair] * (partial if row["y"] == "PARTIAL" else 1)
    for row in lines(t3):
        who, numbers = row["who"], [str(b["n"]) for b in row["beliefs"]]
        beliefs = [spoken(who, b["t"]) for b in row["beliefs"]]
        for later in row["later"]:
            text = f"{who}: {later['t']}"
            for number, relation in later["v"].items():
                pair = who, beliefs[numbers.index(number)], text, RELATION.index(relation)
                yield from [pair] * (partial if relation == "PARTIAL" else 1)
            rest = [n for n, number in enumerate(numbers) if number not in later["v"]]
            if near:
                rest.sort(key=lambda n: -near(row["beliefs"][n]["t"], later["t"]))
            first = (negatives + 1) // 2
            for n in rest[:first] + rng.sample(rest[first:], min(negatives - first, max(0, len(rest) - first))):
                yield who, beliefs[n], text, RELATION.index("IRRELEVANT")


def stray_pairs(t2, rng, *, near, among=8):
    """(who, belief, later sentence, IRRELEVANT): each later sentence of T2 with a belief of the author's other pairs.

    Every second belief is the nearest of `among` by `near`, and every third was itself said later. The pairs of T2 are
    of one matter each, so that without these whatever tells of an end or a change seems to end anything.
    """
    for path in t2:
        rows = list(lines([path]))
        for n, row in enumerate(rows):
            side = "a" if n % 3 else "b"
            strangers = [other for other in rows if other["who"] != row["who"]]  # one person tells a thing twice
            others = rng.sample(strangers, min(among, len(strangers)))
            if not others:
                continue
            other = max(others, key=lambda one: near(one[side], row["b"])) if n % 2 else others[0]
            belief = re.sub(rf"\b{re.escape(other['who'])}(?=s?\b)", row["who"], other[side])
            yield row["who"], spoken(row["who"], belief), f"{row['who']}: {row['b']}", RELATION.index("IRRELEVANT")


def told_again(t3, rng):
    """(who, change, later sentence, relation) of T3: who contradicts a belief twice mostly tells the same change again.

    Nine in ten of these pairs do. Each comes with two sentences that bear on none of the beliefs that the change ends.
    """
    for row in lines(t3):
        who = row["who"]
        for n, change in enumerate(row["later"]):
            ended = {number for number, relation in change["v"].items() if relation == "CONTRADICTS"}
            after = row["later"][n + 1 :]
            again = [one for one in after if any(one["v"].get(number) == "CONTRADICTS" for number in ended)]
            rest = [one for one in after if not ended & one["v"].keys()]
            belief = spoken(who, change["t"])
            for one in again:
                yield who, belief, f"{who}: {one['t']}", RELATION.index("SUPPORTS")
            for one in rng.sample(rest, min(2 * len(again), len(rest))):
                yield who, belief, f"{who}: {one['t']}", RELATION.index("IRRELEVANT")


def spoken(who, text):
    return text if who in text else f"{who}: {text}"


with open(f"{HERE}/names.txt", encoding="utf-8") as _file:
    NAMES = _file.read().split()


def renamed(who, a, b):
    """Both texts with another name for `who`, its genitive included."""
    name, pattern = random.choice(NAMES), re.compile(rf"\b{re.escape(who)}(?=s?\b)")
    return pattern.sub(name, a), pattern.sub(name, b)


def batches(rows, size):
    """(ids, mask, labels) of rows of like length, in random order."""
    order = sorted(range(len(rows)), key=lambda n: len(rows[n][0]) + random.random() * 10)
    groups = [order[n : n + size] for n in range(0, len(order), size)]
    random.shuffle(groups)
    for group in groups:
        yield *pad([rows[n][0] for n in group]), torch.tensor([rows[n][1] for n in group])


class Losses:
    """The loss of a batch by its kind, and running means to print."""

    def __init__(self, categories):
        count = collections.Counter(n for n in categories if n != NO_CATEGORY)
        # Roots of the frequencies: rare classes are heard, and facts are still half of all.
        rare = torch.tensor([(sum(count.values()) / max(1, count[n])) ** 0.5 for n in range(len(CATEGORY))])
        self.category = (rare / rare.mean()).clamp(0.3, 2.0)
        self.relation = torch.tensor(RELATION_WEIGHTS)
        self.means = {}

    def of(self, net, kind, ids, mask, labels):
        worth, relation, category = net(ids, mask)
        if kind == "pair":
            return self.noted(
                "relation", functional.cross_entropy(relation, labels[:, 0], weight=self.relation, label_smoothing=0.03)
            )
        loss = self.noted("worth", functional.cross_entropy(worth, labels[:, 0], label_smoothing=0.03))
        if (labels[:, 1] != NO_CATEGORY).any():
            wrong = functional.cross_entropy(
                category, labels[:, 1], weight=self.category, ignore_index=NO_CATEGORY, label_smoothing=0.03
            )
            loss = loss + 0.5 * self.noted("category", wrong)
        return loss

    def noted(self, name, loss):
        self.means[name] = 0.98 * self.means.get(name, loss.item()) + 0.02 * loss.item()
        return loss

    def __str__(self):
        return " ".join(f"{name} {mean:.3f}" for name, mean in sorted(self.means.items()))


class Teacher:
    """The base's vectors of single sentences, from which the trained net's may not drift."""

    def __init__(self, base, tokenizer, texts):
        encoded = {t: tokenizer.encode(("query: ", "passage: ")[len(t) % 2] + t).ids[:96] for t in texts}
        order = sorted(encoded, key=lambda text: len(encoded[text]))
        self.ids, self.places = [encoded[text] for text in order], {text: n for n, text in enumerate(order)}
        net = load_reader(base)
        groups = [self.ids[n : n + 64] for n in range(0, len(self.ids), 64)]
        with torch.no_grad():
            self.vectors = torch.cat([functional.normalize(net.pooled(*pad(group)), dim=-1) for group in groups])

    def near(self, a, b):
        """Cosine of two of the texts."""
        return (self.vectors[self.places[a]] @ self.vectors[self.places[b]]).item()

    def drift(self, net, size=8):
        """Mean cosine distance of some sentences of like length."""
        start = random.randrange(max(1, len(self.ids) - 64))
        chosen = random.sample(range(start, min(start + 64, len(self.ids))), size)
        pooled = net.pooled(*pad([self.ids[n] for n in chosen]))
        return 1 - (functional.normalize(pooled, dim=-1) * self.vectors[chosen]).sum(-1).mean()


if __name__ == "__main__":
    main()
