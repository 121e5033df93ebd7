"""The reader's net: one encoder with a vector and three heads.

Heads: worth and category of a sentence with its message, relation of a later sentence to a belief.

A base is FILE.npz with tokenizer.json beside it (README.md says how both are made). A pair is read as
<s> a </s> </s> b </s>, a text whose vector is wanted as "query: …" or "passage: …"; pooled is the mean over the mask.
"""

import os

import numpy as np
import onnx
import torch
import torch.nn as nn
from onnx import numpy_helper
from tokenizers import Tokenizer
from transformers import BertConfig, BertModel

WORTH = ["none", "event", "lasting", "change"]
RELATION = ["IRRELEVANT", "SUPPORTS", "CONTRADICTS", "PARTIAL"]
CATEGORY = [
    "fact", "preference", "correction", "entity", "decision", "relationship", "principle", "commitment", "skill",
]  # fmt: skip
HEADS = {"worth": WORTH, "relation": RELATION, "category": CATEGORY}
LIMIT = 140  # tokens of a pair
PAD = 1
LINEAR = {  # name in the base: name in the net, rows, columns
    "q": ("attention.self.query", 384, 384),
    "k": ("attention.self.key", 384, 384),
    "v": ("attention.self.value", 384, 384),
    "ao": ("attention.output.dense", 384, 384),
    "fi": ("intermediate.dense", 1536, 384),
    "fo": ("output.dense", 384, 1536),
}
NORMS = {"aln": "attention.output.LayerNorm", "oln": "output.LayerNorm"}


class Reader(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        config = BertConfig(
            vocab_size=vocabulary, hidden_size=384, num_hidden_layers=12, num_attention_heads=12,
            intermediate_size=1536, max_position_embeddings=512, type_vocab_size=2, layer_norm_eps=1e-12,
            pad_token_id=PAD,
        )  # fmt: skip
        self.encoder = BertModel(config, add_pooling_layer=False)
        self.worth, self.relation, self.category = (nn.Linear(384, len(names)) for names in HEADS.values())
        self.drop = nn.Dropout(0.1)

    def pooled(self, ids, mask):
        hidden = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        weights = mask.unsqueeze(-1).float()
        return (hidden * weights).sum(1) / weights.sum(1)

    def forward(self, ids, mask):
        """Logits (batch, classes) of worth, relation and category."""
        pooled = self.drop(self.pooled(ids, mask))
        return self.worth(pooled), self.relation(pooled), self.category(pooled)


def load_reader(path):
    """A net from a base (.npz), a checkpoint (.pt) or a reader (.onnx); heads that it lacks start afresh."""
    read = {".npz": base_weights, ".onnx": onnx_weights, ".pt": torch.load}[os.path.splitext(path)[1]]
    weights = {name: torch.as_tensor(np.array(value)) for name, value in read(path).items()}
    net = Reader(len(weights["encoder.embeddings.word_embeddings.weight"]))
    missing, unexpected = net.load_state_dict(weights, strict=False)
    lacking = [name for name in missing if name.split(".")[0] not in HEADS]
    if lacking or unexpected:
        raise ValueError(f"{path} is no reader: it lacks {lacking}, and holds {unexpected}")
    net.untrained = {name.split(".")[0] for name in missing}
    return net.eval()


def base_weights(path):
    packed = np.load(path)
    weights = {
        "embeddings.word_embeddings.weight": unpack(packed["emb.word"]).reshape(-1, 384),
        "embeddings.position_embeddings.weight": packed["emb.pos"].reshape(512, 384),
        "embeddings.token_type_embeddings.weight": packed["emb.type"].reshape(2, 384),
        "embeddings.LayerNorm.weight": packed["emb.ln.w"],
        "embeddings.LayerNorm.bias": packed["emb.ln.b"],
    }
    for layer in range(12):
        for short, (name, rows, columns) in LINEAR.items():
            weight = unpack(packed[f"l{layer}.{short}.w"]).reshape(rows, columns)
            weights[f"encoder.layer.{layer}.{name}.weight"] = weight
            weights[f"encoder.layer.{layer}.{name}.bias"] = packed[f"l{layer}.{short}.b"]
        for short, name in NORMS.items():
            weights[f"encoder.layer.{layer}.{name}.weight"] = packed[f"l{layer}.{short}.w"]
            weights[f"encoder.layer.{layer}.{name}.bias"] = packed[f"l{layer}.{short}.b"]
    return {f"encoder.{name}": value for name, value in weights.items()}


def unpack(rows):
    """Float32 from rows of 18 bytes for 32 values: a float16 scale, 16 bytes of two numbers, low first, plus 8."""
    rows = np.asarray(rows).reshape(-1, 18)
    scale, packed = rows[:, :2].copy().view(np.float16).astype(np.float32), rows[:, 2:]
    return np.concatenate([(packed & 15).astype(np.float32) - 8, (packed >> 4).astype(np.float32) - 8], 1) * scale


def onnx_weights(path):
    """Float32 weights of a reader that export.py wrote, rounded ones multiplied out."""
    graph = onnx.load(path).graph
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    weights = {}
    for name in {name.removesuffix("_quantized") for name in stored}:
        if name.startswith("net.") and not name.endswith("_scale"):
            rounded = f"{name}_quantized"
            array = stored[rounded] * stored[f"{name}_scale"] if rounded in stored else stored[name]
            weights[name.removeprefix("net.")] = array
    # The exporter stores an encoder's weight transposed and without a name: the node that uses it tells.
    for node in graph.node:
        layer = node.name.split("/MatMul")[0].strip("/").replace("/", ".")
        if node.op_type == "MatMul" and node.input[1].startswith("onnx::MatMul_"):
            weights[f"{layer}.weight"] = stored[node.input[1]].T
        if node.op_type == "MatMulNBits":  # (rows, blocks, 64) of unsigned bytes around 128, a scale for each block
            blocks = stored[node.input[1]].astype(np.float32) - 128
            scales = stored[node.input[2]].reshape(blocks.shape[0], -1, 1)
            weights[f"{layer}.weight"] = (blocks * scales).reshape(blocks.shape[0], -1)
    return weights


def load_tokenizer(base):
    return Tokenizer.from_file(os.path.join(os.path.dirname(os.path.abspath(base)), "tokenizer.json"))


def encode_pair(tokenizer, a, b):
    """Token ids of a pair; the longer text is cut where both exceed LIMIT."""
    a, b = (tokenizer.encode(text, add_special_tokens=False).ids for text in (a, b))
    while len(a) + len(b) > LIMIT - 4:
        (a if len(a) > len(b) else b).pop()
    return [0, *a, 2, 2, *b, 2]


def pad(rows):
    """Ids and mask (batch, longest) of rows of token ids."""
    longest = max(map(len, rows))
    ids = torch.full((len(rows), longest), PAD)
    mask = torch.zeros((len(rows), longest), dtype=torch.long)
    for n, row in enumerate(rows):
        ids[n, : len(row)], mask[n, : len(row)] = torch.tensor(row), 1
    return ids, mask
