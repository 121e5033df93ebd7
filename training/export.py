"""export.py X.pt OUT.onnx: write OUT.onnx (float32) and OUT.int8.onnx, which is what ships.

Inputs are input_ids and attention_mask (batch, tokens); outputs worth, relation and category (logits) and vector.
Weights of int8 have a scale for each block of 64, embeddings one for each row; activations are rounded by blocks, too,
at run time (MatMulNBits, accuracy level 4). A row's numbers do not depend on the other rows of its batch.
"""

import sys

import numpy as np
import onnx
import torch
import torch.nn as nn
from model import HEADS, load_reader
from onnx import numpy_helper
from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer
from torch.nn import functional

BLOCK = 64  # weights that share a scale


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
    quantize(out, f"{out.removesuffix('.onnx')}.int8.onnx")


def quantize(source, out):
    """Round the weights of matrix products by blocks, and the tables that are looked up by rows."""
    config = DefaultWeightOnlyQuantConfig(
        block_size=BLOCK, is_symmetric=True, accuracy_level=4, bits=8, op_types_to_quantize=("MatMul",)
    )
    quantizer = MatMulNBitsQuantizer(
        onnx.load(source), bits=8, block_size=BLOCK, is_symmetric=True, accuracy_level=4, algo_config=config
    )
    quantizer.process()
    model = quantizer.model.model
    graph = model.graph
    looked_up = {node.input[0] for node in graph.node if node.op_type == "Gather"}
    tables = [
        tensor
        for tensor in graph.initializer
        if tensor.name in looked_up and len(tensor.dims) == 2 and tensor.data_type == onnx.TensorProto.FLOAT
    ]
    names = {tensor.name for tensor in tables}
    for tensor in tables:
        weight = numpy_helper.to_array(tensor)
        scale = np.maximum(np.abs(weight).max(1, keepdims=True), 1e-12) / 127
        graph.initializer.remove(tensor)
        for suffix, array in (("quantized", np.round(weight / scale).astype(np.int8)), ("scale", scale)):
            graph.initializer.append(numpy_helper.from_array(array, f"{tensor.name}_{suffix}"))
    nodes = []
    for node in graph.node:
        is_table = node.op_type == "Gather" and node.input[0] in names
        nodes += scaled_lookup(node) if is_table else [node]
    del graph.node[:]
    graph.node.extend(nodes)
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
