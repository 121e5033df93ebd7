"""export.py X.pt OUT.onnx: write OUT.onnx (float32), OUT.int8.onnx and OUT.weights8.onnx.

Inputs are input_ids and attention_mask (batch, tokens); outputs worth, relation and category (logits) and vector.
int8 also rounds what flows between layers, by the largest value of a whole batch: fast, but probabilities shift, and
a pair's answer depends on its neighbours. weights8 rounds the weights alone and computes in float32.
"""

import sys

import numpy as np
import onnx
import torch
import torch.nn as nn
from model import HEADS, load_reader
from onnx import numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch.nn import functional


class Outputs(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, input_ids, attention_mask):
        pooled = self.net.pooled(input_ids, attention_mask)
        return (
            self.net.worth(pooled),
            self.net.relation(pooled),
            self.net.category(pooled),
            functional.normalize(pooled, dim=-1),
        )


def main():
    source, out = sys.argv[1:]
    inputs, outputs = ["input_ids", "attention_mask"], [*HEADS, "vector"]
    axes = {name: {0: "batch", 1: "tokens"} for name in inputs} | {name: {0: "batch"} for name in outputs}
    ids = torch.randint(4, 1000, (2, 16))
    torch.onnx.export(
        Outputs(load_reader(source)).eval(), (ids, torch.ones_like(ids)), out, input_names=inputs, output_names=outputs,
        dynamic_axes=axes, opset_version=17, dynamo=False,
    )  # fmt: skip
    stem = out.removesuffix(".onnx")
    quantize_dynamic(out, f"{stem}.int8.onnx", weight_type=QuantType.QInt8)
    quantize_weights(out, f"{stem}.weights8.onnx")


def quantize_weights(source, out):
    """Store each matrix as int8 with a scale for each column (embeddings: each row), multiplied where it is used."""
    model = onnx.load(source)
    graph = model.graph
    looked_up = {node.input[0] for node in graph.node if node.op_type == "Gather"}
    transposed = {node.input[1] for node in graph.node if node.op_type == "Gemm"}
    before, after = [], {}
    for tensor in [t for t in graph.initializer if len(t.dims) == 2 and t.data_type == onnx.TensorProto.FLOAT]:
        name, weight = tensor.name, numpy_helper.to_array(tensor)
        by_row = name in looked_up or name in transposed
        scale = np.maximum(np.abs(weight).max(1 if by_row else 0, keepdims=True), 1e-12) / 127
        graph.initializer.remove(tensor)
        graph.initializer.append(numpy_helper.from_array(np.round(weight / scale).astype(np.int8), f"{name}_quantized"))
        graph.initializer.append(numpy_helper.from_array(scale.astype(np.float32), f"{name}_scale"))
        if name in looked_up:
            after[name] = None  # rows are multiplied after they were looked up: the table stays small in memory
        else:
            # A Cast and a Mul of constants are folded when a session starts; a DequantizeLinear would run at each call.
            before.append(
                onnx.helper.make_node("Cast", [f"{name}_quantized"], [f"{name}_float"], to=onnx.TensorProto.FLOAT)
            )
            before.append(onnx.helper.make_node("Mul", [f"{name}_float", f"{name}_scale"], [name]))
    nodes = []
    for node in graph.node:
        if node.op_type == "Gather" and node.input[0] in after:
            nodes += scaled_lookup(node)
        else:
            nodes.append(node)
    del graph.node[:]
    graph.node.extend(before + nodes)
    onnx.checker.check_model(model)
    onnx.save(model, out)


def scaled_lookup(node):
    table, ids, found = node.input[0], node.input[1], node.output[0]
    return [
        onnx.helper.make_node("Gather", [f"{table}_quantized", ids], [f"{found}_quantized"], name=node.name, axis=0),
        onnx.helper.make_node("Gather", [f"{table}_scale", ids], [f"{found}_scale"], axis=0),
        onnx.helper.make_node("Cast", [f"{found}_quantized"], [f"{found}_float"], to=onnx.TensorProto.FLOAT),
        onnx.helper.make_node("Mul", [f"{found}_float", f"{found}_scale"], [found]),
    ]


if __name__ == "__main__":
    main()
